package rail

// Auth is how a rail shows the provider who it is.
type Auth struct {
	Basic Basic `yaml:"basic"`
}

// Basic is a name and a password. Some providers take a key for the name, so
// it is kept as one.
type Basic struct {
	User     Secret `yaml:"user"`
	Password Secret `yaml:"password"`
}
