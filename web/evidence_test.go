package web

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strings"
	"testing"

	"holdfast/store/ledger"
)

func (w *world) evidenceOf(tenant, id string) (int, string) {
	w.t.Helper()
	token, _ := w.token(tenant, "agent-2", "")
	answer := w.do(http.MethodGet, "/v1/operations/"+id+"/evidence", "", "Authorization: Bearer "+token, "X-Request-Id: same")
	return answer.Code, answer.Body.String()
}

// openConfig has nothing that is sensitive.
var openConfig = strings.ReplaceAll(pagesConfig, ", x-sensitive: true", "")

func TestEvidenceCarriesTheBytesAndWhatHappened(t *testing.T) {
	w := newServer(t, openConfig)
	o := w.paid(wanted{}, "pay_1")
	status, body := w.evidenceOf("default", o.OperationID)
	sum := sha256.Sum256(o.Canonical)
	for _, want := range []string{`"masked":false`, hex.EncodeToString(sum[:]), `DE-SECRET-77`, `"outcome":"receipt"`, `"id":"pay_1"`, `"event":"mark"`, `{\"from\":\"provider\"}`, `"provider_key":"` + o.ProviderKey} {
		if status != http.StatusOK || !strings.Contains(body, want) {
			t.Errorf("%d: it lacks %s\n%s", status, want, body)
		}
	}
	if o.Fingerprint != "hf1:sha256:"+hex.EncodeToString(sum[:]) {
		t.Error("the fingerprint is not the hash of the bytes")
	}
	if status, body := w.evidenceOf("default", w.ask(wanted{}).OperationID); status != http.StatusOK || !strings.Contains(body, `"request":null`) || !strings.Contains(body, `"attempts":[]`) {
		t.Errorf("before a send: %d %s", status, body)
	}
}

func TestEvidenceMasksWhatIsSensitive(t *testing.T) {
	w := newServer(t, pagesConfig)
	o := w.paid(wanted{}, "pay_1")
	status, body := w.evidenceOf("default", o.OperationID)
	sum := sha256.Sum256(o.Canonical)
	if status != http.StatusOK || strings.Contains(body, "DE-SECRET-77") || strings.Contains(body, "from\\\":\\\"provider") || !strings.Contains(body, hex.EncodeToString(sum[:])) ||
		!strings.Contains(body, `"masked":true`) || !strings.Contains(body, `\"iban\":\"`+ledger.Masked) || !strings.Contains(body, o.Terms.Recipient) {
		t.Errorf("%d %s", status, body)
	}
}

func TestEvidenceOfAnotherTenantIsNotFoundToTheByte(t *testing.T) {
	w := newServer(t, openConfig)
	o := w.paid(wanted{}, "pay_1")
	_, nowhere := w.evidenceOf("other", "op-nowhere")
	status, foreign := w.evidenceOf("other", o.OperationID)
	if status != http.StatusNotFound || foreign != nowhere {
		t.Errorf("%d\n%s\n%s", status, foreign, nowhere)
	}
	if answer := w.do(http.MethodGet, "/v1/operations/"+o.OperationID+"/evidence", ""); answer.Code != http.StatusUnauthorized {
		t.Error(answer.Code)
	}
}
