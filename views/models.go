package views

import "holdfast/store/ledger"

// Frame is what every page stands in. A page of somebody who is not signed in
// has no Person, and then neither strip nor navigation is drawn.
type Frame struct {
	Tenant  string
	BaseURL string // "https://pay.example.com", for links that people copy; may be empty
	Test    bool   // demo and sandbox: a band says that no real money moves
	Here    Place  // which entry of the navigation this page belongs to
	Person  Person
	Counts  Counts
	Pages   Pages
	Query   string // what stands in the search field
	Now     int64
	Money   ledger.Currencies
	Asset   func(name string) string // static.Path: where an asset is served; nil: under its plain name
}

// Place names an entry of the navigation.
type Place string

// The places, in the order of the navigation.
const (
	AtHome       Place = "home"
	AtApprovals  Place = "approvals"
	AtUnknown    Place = "unknown"
	AtOperations Place = "operations"
	AtRefunds    Place = "refunds"
	AtStatements Place = "statements"
	AtRails      Place = "rails"
	AtRuns       Place = "runs"
	AtAudit      Place = "audit"
	AtSettings   Place = "settings"
)

// Pages says which of the pages beyond Home, Approvals, Unknown and Operations
// exist here. The zero value links to none of them.
type Pages struct {
	Refunds, Statements, Rails, Runs, Audit, Settings bool
}

// Person is who is signed in.
type Person struct {
	Name  string
	Email string
	Roles []string
}

// Counts is the trust strip and the numbers in the navigation.
type Counts struct {
	Approvals       int
	Unknown         int   // unknown and held
	OldestUnknownAt int64 // since when the oldest of them is
	AtRisk          []Sum // their money, one a currency
	Owed            int   // entries of what we owe
	OwedSums        []Sum
	OwedToUs        int // entries of what others owe us; never added to what we owe
	OwedToUsSums    []Sum
	CheckedAt       int64 // when a job last looked
	Statements      int   // lines and operations that need an answer; counted up to a thousand
	RailsPaused     int   // by people
	RailsResting    int   // by their breakers, in this process
}

// Sum is an amount in one currency. Sums of different currencies are never
// added up.
type Sum struct {
	Amount   int64
	Currency string
}

// Decision is one thing a person may want to do on a page. The zero value
// refuses; a refused one is drawn as text that says why.
type Decision struct {
	Act            string // approve, reject, … as in data-act
	Allowed        bool
	Why            string // why it is not possible now, a whole sentence
	From           int64  // when it becomes possible, if time alone will do it
	Way            *Link  // what makes it possible
	ReasonRequired bool
}

// SetupPage creates the first person.
type SetupPage struct {
	Frame     Frame
	Code      string // as typed, or from the link
	CodeGiven bool   // the link brought the code
	Name      string
	Email     string
	Alone     bool   // "just me for now"
	Problem   string // what to change, a whole sentence
	Secure    bool   // served by https or on this very machine
	Folder    string // of the data, for the commands that are shown
}

// LoginPage signs a person in.
type LoginPage struct {
	Frame       Frame
	Email       string
	Next        string // path to go on to
	Wrong       bool
	WaitSeconds int    // after too many wrong ones
	Notice      string // "Your session ended. …"
	Demo        []DemoLink
}

// DemoLink signs in with one click, on a demo only.
type DemoLink struct {
	URL  string
	Name string
	Does string // "finance", "approver", …
}

// HomePage is what needs this person now, in the order of the caller.
type HomePage struct {
	Frame       Frame
	Items       []Need
	Others      []Need // waiting for somebody else
	DoneToday   int
	LongestFor  int64  // longest unknown of this month, milliseconds
	LongestBy   string // who cleared it
	Next        []string
	Cards       []Card // first day
	FirstToken  string // shown once, after set-up
	FirstCurl   string
	InviteLink  string
	NothingEver bool // no operation was ever submitted
}

// Need is one row of the first page: an operation, or a refund owed.
type Need struct {
	Operation  ledger.Operation
	Refund     *ledger.RefundOwed // set: the row is about this, and Operation is where it came from
	Exception  *Exception         // set: the row is about this, and Operation is what it contradicts
	Statements int                // set: the row is about so many lines of statements that need an answer
	Sentence   string             // why it is here
	Flags      []string           // "new recipient"
	Since      int64              // since when it waits
	Until      int64              // when it expires or gets worse; 0: never
	Holder     string             // who has it, if anybody
}

// Exception is what contradicts an operation that ended, with who may answer it.
type Exception struct {
	ledger.Exception
	Answer Decision
	Form   FormState // what was typed, where it was not taken
}

// Card is one of the first day's three, which tick themselves.
type Card struct {
	Title string
	Text  string
	URL   string
	Done  bool
}

// ApprovalsPage lists what people must decide.
type ApprovalsPage struct {
	Frame         Frame
	Items         []Need
	Groups        []Group // what may be approved together
	LastDecidedBy string
	LastTook      int64 // milliseconds from asking to deciding
}

// UnknownPage lists what is unknown and what is held.
type UnknownPage struct {
	Frame      Frame
	Items      []Need
	LongestFor int64
}

// OperationsPage is the list with its filter, newest first.
type OperationsPage struct {
	Frame      Frame
	Filter     Filter
	Items      []ledger.Operation
	NextCursor string
	Counts     map[ledger.Status]int // how many in each status; may be nil
	Types      []string              // action types to choose from
	Many       bool                  // more than 10,000 match
	Ever       bool                  // any operation exists at all
	Curl       string                // shown when none does
	Problem    string                // about the filter
}

// Filter is what the list was asked for, as it stands in the URL.
type Filter struct {
	Status     string
	ActionType string
	Reference  string
	RunID      string
	Query      string
}

// OperationPage is one operation, whole: the approval detail and the record of
// what happened.
type OperationPage struct {
	Frame     Frame
	Operation ledger.Operation
	View      string // fields (or empty) · request · bytes

	Words      string   // the three words of the fingerprint
	Flags      []string // "New recipient", "6× this customer's usual"
	Fields     []Field
	Was        string          // operation id that Fields compares with
	Compare    string          // which of Beside that is: replaced · last · charge; none, or empty: none
	Beside     []Comparison    // what it can be compared with
	Request    *ledger.Request // nil: not rendered yet
	RequestWhy string          // why there is no exact request, if there is none
	Concealed  string          // set: bytes and request may not be shown to this person, and why

	RefundOf   *RefundOf    // set: this is a refund of a charge
	TypedBy    string       // who typed the receipt; empty: a machine brought it
	Recognised bool         // the rail recognises the key of a send now
	RestsUntil int64        // its rail is given a rest until then; 0: it is not
	Paused     ledger.Pause // of its rail, with the name to show; the zero value: nobody paused it

	Rule   string   // the policy row in words: "create_payment, EUR, over 1,000.00 → 1 of finance"
	Facts  []string // WHAT WE KNOW, sentences the ledger vouches for
	Parent string   // operation id of the run's parent step, if known

	Approvals   []ledger.Approval
	Attempts    []ledger.Attempt
	MaxAttempts int
	KeyLost     bool   // the rail recognises repeats, and no more of what this sent: it changed since
	KeyUntil    int64  // a same-key send is safe until then; 0: this rail promises nothing
	RailSays    string // "Same-key resend: promised for 24 h. Look-up by reference, lags 15 min."
	Evidence    []ledger.Evidence
	Log         []ledger.Entry // oldest first
	Refunds     []ledger.RefundOwed
	Side        ledger.StatementSide // how it stands to the statements
	Lines       []StatementRow       // of statements, that are it or say something about it
	Earlier     []Earlier            // operations this one overlaps, or is an alias of
	ReplacedBy  string
	Behind      []ledger.Operation // held because of this one

	Decisions []Decision
	Form      FormState
}

// FormState keeps what somebody had typed when a form comes back to them.
type FormState struct {
	Act     string            // which panel is open
	Values  map[string]string // by field name
	Marked  []string          // JSON Pointers of the fields that a no is about
	Problem string            // what to change, a whole sentence
	Differs bool              // the amount typed is not the one approved: ask whether it is meant
}

// Comparison is another operation that one can be laid beside.
type Comparison struct {
	Kind        string // replaced · last · charge
	OperationID string
}

// RefundOf is the charge that a refund returns, as far as it is known here.
type RefundOf struct {
	ID     string            // the charge's id at the provider, as the refund names it
	Known  *ledger.Charge    // nil: not known here; its returns are the other refunds, confirmed and open
	Charge *ledger.Operation // nil: only a refund owed knows of it
}

// Field is one member of the payload, as the action type's schema names it.
type Field struct {
	Pointer string // JSON Pointer into the payload
	Label   string
	Role    string // amount · currency · recipient · … · empty
	Value   string // as it will be sent; amounts already with their currency
	Raw     string // of an amount: the number that programs send
	Was     string // in the operation compared with
	Changed bool
	Note    string // "never paid before"
	Masked  bool   // not shown to this person; Value is empty
	Gone    bool   // only the operation compared with has it

	order int // of the schema
}

// Earlier is an operation that a held one looks like.
type Earlier struct {
	Operation ledger.Operation
	Why       []string // field by field
	Over      bool     // nothing that lives or happened stands for it: it is no original
	Fields    []Field  // for the comparison, side by side
}

// HoldPage is an operation whose outcome is unknown or which is held: the
// question, both sides on one time axis, what the evidence says, and the
// decisions.
type HoldPage struct {
	OperationPage
	Says    []string // what the evidence says
	Missing []string // what would settle it, and when it can exist
	Differs []Field  // where the provider's receipt differs: Was is what was approved
	Holder  string   // who has it
	Usual   []string // reasons people often give, offered for typing
}

// RefundsPage lists money owed.
type RefundsPage struct {
	Frame     Frame
	Tab       ledger.RefundStatus // empty: all of them
	Items     []ledger.RefundOwed
	Words     []Word                      // of the items; where there are none, their status says it
	Next      string                      // cursor of the next page
	From      map[string]ledger.Operation // by operation id: where the entries came from
	Sums      []RailSum
	Customers []RailSum // the same per customer, whose name stands for the rail's
	Ages      []ledger.RefundAge
}

// RefundPage is one entry: why it is owed, and all that became of it.
type RefundPage struct {
	Frame       Frame
	Entry       ledger.RefundOwed
	From        *ledger.Operation // nil: it was reported without one
	Paying      *ledger.Operation // by which it is being settled now
	Settlements []ledger.RefundSettlement
	Waivers     []ledger.RefundWaiver
	Journal     []ledger.JournalTransaction
	Rails       []string // on which it may have been paid
	Settle      Decision
	Waive       Decision
	Bounce      Decision // what landed came back
	GiveBack    Decision // by an operation
	NextID      string   // what that operation will be called; empty: none can be made over the first rail
	NextWhy     string   // why not
	Form        FormState
}

// RailSum is what is owed in one direction on one rail in one currency.
type RailSum struct {
	ToUs bool
	Rail string
	Sum
	Count int
}

// SettingsPage shows jobs, tokens, people and the configuration in force.
type SettingsPage struct {
	Frame         Frame
	Jobs          []Job
	RunJob        Decision
	Notify        Channels
	Folder        string // of the data, for the commands that are shown
	Tokens        []ledger.TokenRecord
	People        []ledger.PersonRecord
	ManagePeople  bool
	ConfigHash    string
	ConfigFile    string // empty: the built-in one
	ConfigAt      int64  // in force since
	PolicyVersion string
	Instance      string
}

// Channels are the ways in which people are told what waits for them.
type Channels struct {
	List  []Channel
	Test  Decision
	Quiet string // in words; empty: never
	Daily string // in words; empty: none
}

// Channel is one of them, with how it fared.
type Channel struct {
	Name   string
	Kind   string
	Topics []string
	State  ledger.ChannelState
}

// Job is a scheduled job with its last run.
type Job struct {
	Name     string
	Does     string // what it is for, in a few words
	Schedule string
	Last     *ledger.JobRun // nil: never ran
	NextAt   int64
}

// MessagePage says one thing: what happened, or why something did not. The
// functions in messages.go make the ones with fixed words.
type MessagePage struct {
	Frame Frame
	Tone  Tone
	Title string
	Lines []string
	Quote string // somebody's words, fenced
	Rows  []Field
	Links []Link
	After *ledger.Operation // shown with its status, after a decision

	TakeBack *ledger.Operation // whose approval the reader may take back here
}

// Link is a way on from a message.
type Link struct {
	URL  string
	Text string
}
