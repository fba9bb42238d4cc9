package archtest

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

const modulePath = "github.com/gorocketmq/rocketmq"

// A source is one Go file of the module.
type source struct {
	path    string // slash-separated, from the module's root
	dir     string // its package: the directory, "" for the root package
	name    string // the package clause
	test    bool   // a _test.go file
	text    []byte
	fset    *token.FileSet
	file    *ast.File
	imports []string // import paths; the module's own packages as "./dir", the root as "."
}

// program reports whether the file belongs to a command or an example, which
// may print, sleep and start goroutines.
func (s *source) program() bool {
	return s.name == "main" || within(s.dir, []string{"examples/internal"}) // the examples' shared half
}

// parse reads one file of the module.
func parse(name string, text []byte) (*source, error) {
	s := &source{path: name, dir: path.Dir(name), test: strings.HasSuffix(name, "_test.go"), text: text, fset: token.NewFileSet()}
	if s.dir == "." {
		s.dir = ""
	}
	var err error
	if s.file, err = parser.ParseFile(s.fset, name, text, parser.ParseComments|parser.SkipObjectResolution); err != nil {
		return nil, err
	}
	s.name = s.file.Name.Name
	for _, spec := range s.file.Imports {
		p, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return nil, err
		}
		if p == modulePath {
			p = "."
		} else if rel, own := strings.CutPrefix(p, modulePath+"/"); own {
			p = "./" + rel
		}
		s.imports = append(s.imports, p)
	}
	return s, nil
}

// load reads the Go files below root, without nested modules, test data and
// what tools ignore by name.
func load(root string) ([]*source, error) {
	var out []*source
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if p == root {
				return nil
			}
			if n := d.Name(); n == "testdata" || n == "vendor" || n[0] == '.' || n[0] == '_' {
				return filepath.SkipDir
			}
			if _, err := os.Stat(filepath.Join(p, "go.mod")); err == nil {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(p, ".go") {
			return nil
		}
		text, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, p)
		if err != nil {
			return err
		}
		s, err := parse(filepath.ToSlash(rel), text)
		if err != nil {
			return err
		}
		out = append(out, s)
		return nil
	})
	return out, err
}

// A violation is one broken rule.
type violation struct {
	rule string
	pos  string // file or file:line
	what string
}

func (v violation) String() string { return fmt.Sprintf("%s: %s (rule %q)", v.pos, v.what, v.rule) }

// at names a line of a file.
func (s *source) at(p token.Pos) string {
	return fmt.Sprintf("%s:%d", s.path, s.fset.Position(p).Line)
}

// check applies every rule to every file.
func check(files []*source) []violation {
	var out []violation
	for _, s := range files {
		out = append(out, checkImports(s)...)
		out = append(out, checkSource(s)...)
	}
	out = append(out, checkLeakMain(files)...)
	slices.SortFunc(out, func(a, b violation) int { return strings.Compare(a.String(), b.String()) })
	return out
}
