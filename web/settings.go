package web

import (
	"net/http"
	"slices"
	"time"

	"github.com/labstack/echo/v4"

	"holdfast/dispatch"
	"holdfast/store/ledger"
	"holdfast/views"
)

// does says what each job is for.
var does = map[string]string{
	"sweep":      "ends leases of silent workers and approvals nobody gave",
	"lookup":     "asks providers about operations whose outcome is unknown",
	"recheck":    "looks once more at a sample of what ended, for what was done twice or is gone, and whether the log is what was sealed",
	"seal":       "signs what was logged since it last did",
	"statements": "matches lines of statements with operations, and finds what no statement shows",
	"refunds":    "counts what is owed, and holds up what is past its day",
	"notify":     "tells people outside what waits for them",
	"events":     "takes up providers' events whose operation was not known before",
}

// settings shows jobs, tokens, people and the configuration in force.
func (s *Server) settings(c echo.Context, p ledger.PersonRecord) error {
	ctx := c.Request().Context()
	f, err := s.frame(c, views.AtSettings, p)
	if err != nil {
		return err
	}
	config := s.Config()
	page := views.SettingsPage{Frame: f, ConfigHash: config.Hash, ConfigFile: config.Source,
		PolicyVersion: s.Store.Rulebook(p.TenantID).Policy.Version, Folder: s.Folder, Instance: s.Store.Instance()}
	if page.Tokens, err = s.Store.Tokens(ctx, p.TenantID); err != nil {
		return err
	}
	if page.People, err = s.Store.People(ctx, p.TenantID); err != nil {
		return err
	}
	page.RunJob = mayRunJobs(p)
	page.ManagePeople, _ = ledger.MayManagePeople(p)
	if page.Jobs, err = s.listJobs(c, p); err != nil {
		return err
	}
	if page.Notify, err = s.channels(ctx, p); err != nil {
		return err
	}
	return render(c, http.StatusOK, views.Settings(page))
}

// mayRunJobs: jobs serve every tenant, so they belong to the people of the
// default one, who run the server.
func mayRunJobs(p ledger.PersonRecord) views.Decision {
	d := views.Decision{Act: "run-job"}
	if p.TenantID != dispatch.DefaultTenant {
		d.Why = "Jobs serve every tenant of this server; the people who run it start them."
		return d
	}
	d.Allowed, d.Why = ledger.MayAct(p.Email, p.Roles)
	return d
}

func (s *Server) listJobs(c echo.Context, p ledger.PersonRecord) ([]views.Job, error) {
	if p.TenantID != dispatch.DefaultTenant {
		return nil, nil // what a job looked at tells of other tenants
	}
	runs, err := s.Store.LastRuns(c.Request().Context())
	if err != nil {
		return nil, err
	}
	var jobs []views.Job
	for _, name := range s.Scheduler.Jobs() {
		job := views.Job{Name: name, Does: does[name], Schedule: s.Config().Jobs[name]}
		if schedule, err := dispatch.ParseSchedule(job.Schedule); err == nil {
			job.NextAt = schedule.Next(time.UnixMilli(s.Store.Now()).UTC()).UnixMilli()
		}
		for _, run := range runs {
			if run.Job == name {
				job.Last = new(s.withoutNames(run))
			}
		}
		jobs = append(jobs, job)
	}
	return jobs, nil
}

// withoutNames keeps the problems of a run, but not whose operations they name,
// where there are other tenants.
func (s *Server) withoutNames(run ledger.JobRun) ledger.JobRun {
	if len(s.Store.Tenants()) <= 1 {
		return run
	}
	run.Problems = slices.Clone(run.Problems)
	for i := range run.Problems {
		run.Problems[i] = "Something could not be done, or does not hold; the server's log names it."
	}
	return run
}

// runJob runs a job now and says what it did.
func (s *Server) runJob(c echo.Context, p ledger.PersonRecord) error {
	f, err := s.frame(c, views.AtSettings, p)
	if err != nil {
		return err
	}
	if d := mayRunJobs(p); !d.Allowed {
		return render(c, http.StatusForbidden, views.Message(views.Forbidden(f, d.Why)))
	}
	name := typed(c, "job")
	if !slices.Contains(s.Scheduler.Jobs(), name) {
		return render(c, http.StatusUnprocessableEntity, views.Message(views.Unclear(f, "There is no job of that name.", "/settings")))
	}
	run, err := s.Scheduler.RunFor(c.Request().Context(), name, p)
	if err != nil && len(run.Problems) == 0 {
		return err
	}
	return render(c, http.StatusOK, views.Message(views.JobDone(f, s.withoutNames(run))))
}
