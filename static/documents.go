package static

import (
	_ "embed"
	"strings"
	"sync"

	"github.com/goccy/go-yaml"
)

//go:embed api/openapi.yaml
var openAPI []byte

//go:embed api/llms.txt
var forModels string

// OpenAPI is the API's own description as JSON. It is written as YAML, which
// people can read and change, and turned once, when it is first asked for.
var OpenAPI = sync.OnceValue(func() []byte {
	document, err := yaml.YAMLToJSON(openAPI)
	if err != nil {
		panic(err) // the file is part of the program
	}
	return document
})

// ForModels is the page that teaches a model to call the API at that base URL.
func ForModels(base string) string { return strings.ReplaceAll(forModels, "{BASE}", base) }
