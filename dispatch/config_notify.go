package dispatch

import (
	"fmt"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"holdfast/dispatch/rail"
	"holdfast/store/ledger"
)

// Notify is whom a tenant wants told, of what, and when not.
type Notify struct {
	Link     string // where people open holdfast; no slash at its end
	Zone     *time.Location
	Quiet    ledger.QuietHours
	When     string // the quiet hours as they are written
	Daily    int    // minute of the day; -1: no daily note
	Channels []*Channel
}

// The kinds of channels.
const (
	ChannelSlack   = "slack"
	ChannelNtfy    = "ntfy"
	ChannelSMTP    = "smtp"
	ChannelWebhook = "webhook"
)

var channelKinds = []string{ChannelSlack, ChannelNtfy, ChannelSMTP, ChannelWebhook}

type notifyText struct {
	Link  string `yaml:"link"`
	Zone  string `yaml:"zone"`
	Quiet *struct {
		From string `yaml:"from"`
		To   string `yaml:"to"`
	} `yaml:"quiet"`
	Daily    string        `yaml:"daily"`
	About    oneOrMore     `yaml:"about"`
	Channels []channelText `yaml:"channels"`
}

type channelText struct {
	Name         string        `yaml:"name"`
	Kind         string        `yaml:"kind"`
	URL          string        `yaml:"url"`
	Topic        string        `yaml:"topic"`
	Token        *rail.Secret  `yaml:"token"`
	Secret       *rail.Secret  `yaml:"secret"`
	From         string        `yaml:"from"`
	To           oneOrMore     `yaml:"to"`
	User         *rail.Secret  `yaml:"user"`
	Password     *rail.Secret  `yaml:"password"`
	About        oneOrMore     `yaml:"about"`
	AllowPrivate bool          `yaml:"allow_private"`
	Timeout      rail.Duration `yaml:"timeout"`
}

// notify builds a tenant's channels; nil: none are configured.
func (b *configBuilder) notify(key string, text *notifyText) *Notify {
	if text == nil {
		return nil
	}
	n := &Notify{Link: b.link(key+".link", text.Link), Zone: b.zone(key+".zone", text.Zone), Daily: -1}
	if q := text.Quiet; q != nil {
		quiet, ok := ledger.NewQuietHours(q.From, q.To, n.Zone)
		if !ok {
			b.add(key+".quiet", `needs two different times, such as { from: "22:00", to: "07:00" }`)
		}
		n.Quiet, n.When = quiet, q.From+"–"+q.To+" "+n.Zone.String()
	}
	if text.Daily != "" {
		minute, ok := ledger.MinuteOfDay(text.Daily)
		if !ok {
			b.add(key+".daily", `is no time; write one such as "09:00"`)
		}
		n.Daily = minute
	}
	about := b.topics(key+".about", text.About, ledger.Topics)
	if len(text.Channels) == 0 {
		b.add(key+".channels", "is missing; list at least one channel, or leave notify out")
	}
	seen := map[string]bool{}
	for i, t := range text.Channels {
		at := fmt.Sprintf("%s.channels[%d]", key, i)
		if t.Name == "" {
			t.Name = t.Kind
		}
		switch {
		case !slices.Contains(channelKinds, t.Kind):
			b.add(at+".kind", "%q is not one of %s", t.Kind, strings.Join(channelKinds, ", "))
			continue
		case !railName.MatchString(t.Name):
			b.add(at+".name", "name it with 1 to 63 of A-Z a-z 0-9 _ -")
			continue
		case seen[t.Name]:
			b.add(at+".name", "%q is the name of another channel", t.Name)
			continue
		}
		seen[t.Name] = true
		if c := b.channel(at, t, n.Link); c != nil {
			c.Topics = b.topics(at+".about", t.About, about)
			n.Channels = append(n.Channels, c)
		}
	}
	return n
}

func (b *configBuilder) link(key, text string) string {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		b.add(key, "is missing or no address; write where people open holdfast, such as https://pay.example.com")
	}
	return strings.TrimSuffix(text, "/")
}

func (b *configBuilder) zone(key, name string) *time.Location {
	if name == "" {
		return time.UTC
	}
	zone, err := time.LoadLocation(name)
	if err != nil || name == "Local" { // the machine's own zone is nobody's decision
		b.add(key, "%q is no time zone; use a name such as Europe/Berlin or UTC", name)
		return time.UTC
	}
	return zone
}

func (b *configBuilder) topics(key string, given oneOrMore, otherwise []string) []string {
	if given == nil {
		return otherwise
	}
	for _, topic := range given {
		if !slices.Contains(ledger.Topics, topic) {
			b.add(key, "%q is not one of %s", topic, strings.Join(ledger.Topics, ", "))
		}
	}
	return given
}

var ntfyTopic = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// channel makes a channel out of a rail of its own: the guard of addresses, the
// connection that follows no redirect, the time limit and the mail dialogue are
// those of rails.
func (b *configBuilder) channel(at string, t channelText, link string) *Channel {
	b.onlyFor(at, t)
	c := &Channel{Name: t.Name, Kind: t.Kind, now: b.around.now, link: link, to: t.To, topic: t.Topic}
	config := rail.Config{Adapter: rail.AdapterHTTP, BaseURL: t.URL, AllowPrivate: t.AllowPrivate, Timeout: t.Timeout}
	switch t.Kind {
	case ChannelSMTP:
		config.Adapter, config.Mail.From = rail.AdapterSMTP, t.From
		if t.Timeout == (rail.Duration{}) {
			config.Timeout = rail.Lasting(30 * time.Second)
		}
		if t.User != nil || t.Password != nil {
			config.Auth.Basic = &rail.Basic{}
			if t.User != nil {
				config.Auth.Basic.User = *t.User
			}
			if t.Password != nil {
				config.Auth.Basic.Password = *t.Password
			}
		}
	case ChannelNtfy:
		if !ntfyTopic.MatchString(t.Topic) {
			b.add(at+".topic", "is missing or no topic: 1 to 64 of A-Z a-z 0-9 _ -")
		}
		if t.Token != nil {
			config.Auth.Bearer = *t.Token
		}
	case ChannelWebhook:
		if t.Secret == nil {
			b.add(at+".secret", "is missing; write whsec_ and base64 of 24 bytes or more, which the receiver knows as well")
		} else if _, err := rail.SignStandard(*t.Secret, "msg", time.Unix(0, 0), nil); err != nil {
			b.add(at+".secret", "%v", err)
		} else {
			c.secret = *t.Secret
		}
	}
	if config.Adapter == rail.AdapterHTTP {
		config.BaseURL, config.Send.Path = apart(t.URL)
		if strings.HasPrefix(t.URL, "http://") && !t.AllowPrivate && !isNear(t.URL) {
			b.add(at+".url", "would send in the clear; write https://")
		}
	}
	r, err := rail.New(t.Name, config, b.around.now)
	for _, e := range each(err) {
		key, message := afterRail(e, t.Name)
		b.foreign(at+"."+channelKey(key), strings.NewReplacer("base_url", "url", "the provider's address", "the address").Replace(message))
	}
	if err != nil {
		return nil
	}
	if c.rail = r; t.Kind == ChannelSMTP {
		if _, err := c.request(ledger.Message{Name: "msg", Title: "Test", MadeAt: 1}, time.Unix(0, 0)); err != nil {
			b.add(at+".to", "needs 1 to 100 e-mail addresses, each of them once")
		}
	}
	return c
}

// onlyFor refuses what a kind has no use for: a key that is read and then ignored
// would promise something.
func (b *configBuilder) onlyFor(at string, t channelText) {
	for _, k := range []struct {
		key, kind string
		given     bool
	}{
		{"topic", ChannelNtfy, t.Topic != ""}, {"token", ChannelNtfy, t.Token != nil}, {"secret", ChannelWebhook, t.Secret != nil},
		{"from", ChannelSMTP, t.From != ""}, {"to", ChannelSMTP, t.To != nil}, {"user", ChannelSMTP, t.User != nil}, {"password", ChannelSMTP, t.Password != nil},
	} {
		if k.given && k.kind != t.Kind {
			b.add(at+"."+k.key, "is for kind %s", k.kind)
		}
	}
}

// channelKey is the key of a channel that a rail's key came from.
func channelKey(key string) string {
	known := map[string]string{"base_url": "url", "send.path": "url", "auth.bearer": "token", "auth.basic.user": "user", "auth.basic.password": "password",
		"auth": "url", "mail.from": "from", "mail.domain": "from"}
	if k, ok := known[key]; ok {
		return k
	}
	return key
}

// apart splits an address into its server and the rest, which may be a secret.
func apart(address string) (base, path string) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Fragment != "" {
		return address, "/" // a rail says what is wrong
	}
	path = u.EscapedPath()
	if path == "" {
		path = "/"
	}
	if u.RawQuery != "" {
		path += "?" + u.RawQuery
	}
	user := ""
	if u.User != nil {
		user = "user@" // which a rail refuses, too
	}
	return u.Scheme + "://" + user + u.Host, path
}

// isNear reports whether an address names this machine or its own network.
func isNear(address string) bool {
	u, err := url.Parse(address)
	if err != nil {
		return false
	}
	ip, err := netip.ParseAddr(u.Hostname())
	return u.Hostname() == "localhost" || err == nil && (ip.IsLoopback() || ip.IsPrivate())
}
