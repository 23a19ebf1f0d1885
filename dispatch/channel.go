package dispatch

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"holdfast/dispatch/rail"
	"holdfast/store/ledger"
)

// Channel is one way to tell people something. It only ever carries words out:
// nothing that comes back decides anything.
type Channel struct {
	Name   string
	Kind   string
	Topics []string

	rail   *rail.Rail
	now    func() time.Time
	link   string
	to     []string
	topic  string
	secret rail.Secret
}

// Format prints the name whatever the verb: the address alone may be a secret.
func (c *Channel) Format(s fmt.State, _ rune) { fmt.Fprint(s, "channel "+c.Name) }

// Tells reports whether the channel is for notices of this kind.
func (c *Channel) Tells(k ledger.NoticeKind) bool { return slices.Contains(c.Topics, k.Topic()) }

// Undelivered is why a message did not get through. Where it is refused for good,
// trying again would hold up what stands behind it and change nothing.
type Undelivered struct {
	Why     string
	ForGood bool
}

func (u *Undelivered) Error() string { return u.Why }

// Deliver sends a message once. Its error is an [Undelivered]. A message whose
// answer was lost may have arrived: it comes again, under the same name.
func (c *Channel) Deliver(ctx context.Context, m ledger.Message) error {
	now := c.now()
	req, err := c.request(m, now)
	if err != nil {
		return &Undelivered{"It cannot be written as a message of this channel.", true}
	}
	conn, err := c.rail.Connect(ctx)
	if err != nil {
		return &Undelivered{Why: "Not reached: " + rail.WhyUnreached(err) + "."}
	}
	x := conn.Send(ctx, req, now.Add(time.Minute))
	if c.Kind == ChannelSMTP {
		a := c.rail.Classify(ledger.Operation{ProviderKey: m.Name, OrderID: m.Name}, x)
		switch a.Finding {
		case ledger.Found:
			return nil
		default:
			return &Undelivered{a.Sentence, a.Finding == ledger.Refused}
		}
	}
	switch {
	case x.Status >= 200 && x.Status < 300:
		return nil
	case x.Status >= 300 && x.Status < 400:
		return &Undelivered{Why: fmt.Sprintf("It answered %d, which leads elsewhere; redirects are not followed.", x.Status)}
	case x.Status > 0:
		refused := slices.Contains([]int{http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity}, x.Status)
		return &Undelivered{fmt.Sprintf("It answered %d.", x.Status), refused}
	}
	return &Undelivered{Why: "No answer: " + x.Err.Error() + "."}
}

// request is a message as it goes out.
func (c *Channel) request(m ledger.Message, now time.Time) (ledger.Request, error) {
	payload, err := json.Marshal(c.shape(m))
	if err != nil {
		return ledger.Request{}, err
	}
	req, err := c.rail.Render(ledger.Operation{OperationID: m.Name, OrderID: m.Name, ProviderKey: m.Name, CreatedAt: m.MadeAt, Payload: payload})
	if err != nil || c.Kind != ChannelWebhook {
		return req, err
	}
	signature, err := rail.SignStandard(c.secret, m.Name, now, req.Body)
	if err != nil {
		return req, err
	}
	req.Header = append(req.Header, [2]string{"Webhook-Id", m.Name}, [2]string{"Webhook-Timestamp", strconv.FormatInt(now.Unix(), 10)},
		[2]string{"Webhook-Signature", signature})
	req.SHA256 = req.HashRequest()
	return req, nil
}

// shape is a message as each kind of receiver wants it.
func (c *Channel) shape(m ledger.Message) any {
	url := c.link + m.Path
	text := strings.Join(m.Lines, "\n")
	switch c.Kind {
	case ChannelSlack:
		return slackText{Text: strings.Join(append([]string{slackPlain(m.Title)}, slackPlain(text), url), "\n")}
	case ChannelNtfy:
		priority := 3
		if m.Kind == ledger.AboutExpiring || m.Kind == ledger.AboutRail {
			priority = 4
		}
		return map[string]any{"topic": c.topic, "title": m.Title, "message": text + "\n" + url, "click": url, "priority": priority, "tags": []string{string(m.Kind)}}
	case ChannelSMTP:
		return map[string]any{"to": c.to, "subject": m.Title, "body": m.Title + "\n\n" + text + "\n\n" + url + "\n"}
	}
	data := webhookData{Title: m.Title, Lines: m.Lines, Count: m.Count, Link: url}
	for _, n := range m.Notices {
		data.Notices = append(data.Notices, webhookNotice{Notice: n, Link: c.link + n.Path})
	}
	return webhookText{Type: "holdfast." + string(m.Kind), Timestamp: time.UnixMilli(m.MadeAt).UTC().Format(time.RFC3339), Data: data}
}

// slackText is what Slack, and those that speak like it, take. Nothing in it is
// markup, and nothing is fetched to be shown beside it.
type slackText struct {
	Text        string `json:"text"`
	Mrkdwn      bool   `json:"mrkdwn"`
	UnfurlLinks bool   `json:"unfurl_links"`
	UnfurlMedia bool   `json:"unfurl_media"`
}

type webhookText struct {
	Type      string      `json:"type"`
	Timestamp string      `json:"timestamp"`
	Data      webhookData `json:"data"`
}

type webhookData struct {
	Title   string          `json:"title"`
	Lines   []string        `json:"lines"`
	Count   int             `json:"count"`
	Link    string          `json:"link"`
	Notices []webhookNotice `json:"notices"`
}

type webhookNotice struct {
	ledger.Notice
	Path string `json:"path,omitempty"` // left empty: it stands in the link
	Link string `json:"link"`
}

// slackPlain makes text that calls nobody and links nowhere: Slack's own escapes,
// and for those that read Markdown or @names, what these begin with.
func slackPlain(s string) string {
	s = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", "](", "] (").Replace(s)
	var b strings.Builder
	var before rune
	for _, r := range s {
		inWord := before >= '0' && before <= '9' || before >= 'A' && before <= 'Z' || before >= 'a' && before <= 'z'
		if r == '@' && !inWord {
			b.WriteString("(at)")
		} else {
			b.WriteRune(r)
		}
		before = r
	}
	return b.String()
}
