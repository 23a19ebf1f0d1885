package web

import (
	"errors"
	"io"
	"net/http"

	"github.com/labstack/echo/v4"

	"holdfast/dispatch"
	"holdfast/reconcile"
)

// hearEvent answers POST /v1/rails/{rail}/events. No token comes with it: the
// provider's signature is the proof, and the address names the tenant. An address
// where no events are taken in is answered as a bad signature is, to the byte:
// whoever tries addresses learns nothing. The provider is told that we have it
// once it is committed, and not before.
func (s *Server) hearEvent(c echo.Context) error {
	tenant, rail := c.QueryParam("tenant"), c.Param("rail")
	if tenant == "" {
		tenant = dispatch.DefaultTenant
	}
	log := s.Log.With("request_id", requestIDOf(c), "tenant", "", "rail", "")
	bucket := "events of nobody "
	if t := s.Config().Tenants[tenant]; t != nil && t.Rails[rail] != nil { // names of ours: others are not repeated in logs
		log, bucket = s.Log.With("request_id", requestIDOf(c), "tenant", tenant, "rail", rail), "events of "+tenant+" "+rail+" "
	}
	if err := s.limitRate(c, "events", bucket+clientAddress(c.Request()).String()); err != nil {
		return err
	}
	body, err := readEvent(c)
	if err != nil {
		return err
	}
	err = s.Scheduler.Hear(c.Request().Context(), tenant, rail, c.Request().Header, body)
	if unproven, ok := errors.AsType[reconcile.Unproven](err); ok {
		log.Warn("an event was refused", "why", unproven.Why, "bytes", len(body))
		return newProblem("bad_signature", "")
	}
	if errors.Is(err, reconcile.ErrNoEvents) {
		log.Warn("an event was refused", "why", "nothing is set up at this address", "bytes", len(body))
		return newProblem("bad_signature", "")
	}
	if err != nil {
		return err
	}
	return writeJSON(c, http.StatusOK, echo.MIMEApplicationJSON, map[string]bool{"received": true})
}

// readEvent reads the body as it is. Its media type is the provider's business:
// it was signed as bytes.
func readEvent(c echo.Context) ([]byte, error) {
	r := c.Request()
	if r.ContentLength > maxBody {
		return nil, newProblem("body_too_large", "")
	}
	body, err := io.ReadAll(http.MaxBytesReader(c.Response(), r.Body, maxBody))
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return nil, newProblem("body_too_large", "")
	}
	if err != nil {
		return nil, newProblem("invalid_request", "The body did not arrive whole. Send the event again. Nothing was recorded.")
	}
	return body, nil
}
