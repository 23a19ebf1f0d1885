package ledger

// JobRun is one run of a scheduled job: why it was made, what it did, and what
// went wrong.
type JobRun struct {
	ID           int64
	Job          string
	Node         string
	Why          JobWhy
	TenantID     string // of the person who asked; else empty: jobs serve every tenant
	AskedBy      string // their e-mail
	ScheduledFor int64  // the tick it was made for; 0: none
	StartedAt    int64
	FinishedAt   int64
	LookedAt     int
	Resolved     int
	Held         int
	Opened       int // refunds owed and exceptions
	Problems     []string
}

// Idle reports whether the run found nothing to do.
func (r JobRun) Idle() bool { return r.LookedAt == 0 && r.Opened == 0 && len(r.Problems) == 0 }

// JobWhy says why a job was run.
type JobWhy string

// The reasons of a run.
const (
	OnSchedule JobWhy = "schedule"
	Missed     JobWhy = "missed" // its tick passed while nobody ran
	OnRequest  JobWhy = "person"
	OnCommand  JobWhy = "command"
)

// JobLease is the right to run a job until it ends. Its fence proves that nobody
// took the job over meanwhile.
type JobLease struct {
	Job   string
	Node  string
	Fence int64
}
