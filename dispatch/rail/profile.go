package rail

import (
	"embed"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"reflect"
	"strings"
	"sync"

	"github.com/goccy/go-yaml"
)

// profiles holds one file for each provider that the program knows by name.
//
//go:embed profiles/*.yaml
var profiles embed.FS

// Profile is a provider as its documents describe it: how a rail speaks to it,
// and what people should know before they trust it. It permits only what is
// published; how long a key is kept counts as not at all where nobody says.
type Profile struct {
	Name string `yaml:"-"`
	Text string `yaml:"-"` // the file itself

	Title   string   `yaml:"title"`
	About   string   `yaml:"about"`
	Checked string   `yaml:"checked"` // the day the sources were read, 2006-01-02
	Sources []string `yaml:"sources"`

	Credential string `yaml:"credential"` // which header the configuration has to give, in words
	Key        string `yaml:"key"`        // what recognises a repeat, in words
	Scope      string `yaml:"scope"`      // what must stay the same for that
	Replay     string `yaml:"replay"`     // what a repeat is answered
	// Mismatch and Concurrent are what the provider answers to the same key with
	// another body, and to a second request while the first one runs.
	Mismatch   ProfileAnswer `yaml:"mismatch"`
	Concurrent ProfileAnswer `yaml:"concurrent"`
	Events     string        `yaml:"events"` // how it tells of outcomes, in words
	Caveats    []string      `yaml:"caveats"`

	Rail Config `yaml:"rail"`
}

// ProfileAnswer is a documented answer. A status of zero is none that is known.
type ProfileAnswer struct {
	Status int    `yaml:"status"`
	Words  string `yaml:"words"`
}

func (a ProfileAnswer) String() string {
	if a.Status == 0 {
		return a.Words
	}
	return fmt.Sprintf("%d: %s", a.Status, a.Words)
}

// Profiles are all ready-made profiles, by name.
func Profiles() []Profile { return loadProfiles() }

// ProfileNames are their names, sorted.
func ProfileNames() (names []string) {
	for _, p := range loadProfiles() {
		names = append(names, p.Name)
	}
	return names
}

// ProfileNamed is the profile of that name.
func ProfileNamed(name string) (Profile, bool) {
	for _, p := range loadProfiles() {
		if p.Name == name {
			return p, true
		}
	}
	return Profile{}, false
}

var loadProfiles = sync.OnceValue(func() (all []Profile) {
	files, err := fs.Glob(profiles, "profiles/*.yaml")
	for _, file := range files {
		var text []byte
		if text, err = profiles.ReadFile(file); err != nil {
			break
		}
		p := Profile{Name: strings.TrimSuffix(path.Base(file), ".yaml"), Text: string(text)}
		if err = yaml.UnmarshalWithOptions(text, &p, yaml.Strict()); err != nil {
			err = fmt.Errorf("%s: %w", file, err)
			break
		}
		all = append(all, p)
	}
	if err != nil {
		panic(err) // they are part of the program, and a test reads them all
	}
	return all
})

// withProfile puts the profile's blocks in where the configuration has none. A
// block is the profile's or the configuration's, never a mixture; only headers
// are joined by name, since the profile has no credentials.
func (c Config) withProfile() (Config, error) {
	if c.Profile == "" {
		return c, nil
	}
	p, known := ProfileNamed(c.Profile)
	if !known {
		return c, fmt.Errorf("%q is no profile; there are %s", c.Profile, strings.Join(ProfileNames(), ", "))
	}
	merged := p.Rail
	into, given := reflect.ValueOf(&merged).Elem(), reflect.ValueOf(c)
	for i := range given.NumField() {
		if !given.Field(i).IsZero() {
			into.Field(i).Set(given.Field(i))
		}
	}
	merged.Headers = maps.Clone(p.Rail.Headers)
	for name, value := range c.Headers {
		for own := range p.Rail.Headers {
			if strings.EqualFold(own, name) {
				delete(merged.Headers, own)
			}
		}
		if merged.Headers == nil {
			merged.Headers = map[string]Secret{}
		}
		merged.Headers[name] = value
	}
	return merged, nil
}
