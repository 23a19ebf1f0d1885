package dispatch

import (
	"embed"
	"errors"
	"io/fs"
	"path"
	"time"
)

// defaults is what is in force without a file. It is a file like any other, so
// that it can be copied and changed.
//
//go:embed defaults
var defaults embed.FS

const (
	defaultFolder = "defaults"
	defaultSource = "built-in defaults"
)

// Defaults are the files that are in force without a configuration: holdfast.yaml
// and the schemas it names, to be copied and changed.
func Defaults() fs.FS {
	files, err := fs.Sub(defaults, defaultFolder)
	if err != nil {
		panic(err) // the folder is part of the program
	}
	return files
}

func defaultConfig(env Env, now func() time.Time, sandbox SandboxAddress) (*Config, error) {
	text, err := defaults.ReadFile(path.Join(defaultFolder, "holdfast.yaml"))
	if err != nil {
		return nil, err
	}
	beside := func(file string) ([]byte, error) { return fs.ReadFile(defaults, path.Join(defaultFolder, file)) }
	noSecret := func(string) ([]byte, error) { return nil, errors.New("the defaults have no secrets") }
	return parseConfig(text, defaultSource, surroundings{beside, noSecret, env, now, sandbox})
}
