package archtest

import (
	"fmt"
	"go/ast"
	"path"
	"regexp"
	"slices"
	"strings"
)

// longest is the most lines a file may have: one file, one job.
const longest = 800

var leftOver = regexp.MustCompile(`\b(TODO|FIXME)\b`)

// otherLinter is a directive that the linters in use here do not read.
var otherLinter = regexp.MustCompile(`^//\s*nolint\b`)

// Calls that are kept out of libraries. A server takes its time from
// internal/clock, so that a test can move it.
var (
	serverTime = []string{"Now", "Since", "Until", "After", "AfterFunc", "NewTimer", "NewTicker", "Tick"}
	printing   = []string{"Print", "Printf", "Println"}
)

// checkSource judges the text of one file.
func checkSource(s *source) (out []violation) {
	bad := func(rule, pos, what string) { out = append(out, violation{rule, pos, what}) }

	line := 1
	for _, b := range s.text {
		if b == '\n' {
			line++
		}
		if b > 0x7E || b < ' ' && b != '\n' && b != '\t' {
			bad("Go files are ASCII", fmt.Sprintf("%s:%d", s.path, line), fmt.Sprintf("byte 0x%02x", b))
			break
		}
	}
	if line > longest && !ast.IsGenerated(s.file) {
		bad("a file has one job", s.path, fmt.Sprintf("%d lines, more than %d", line, longest))
	}
	for _, g := range s.file.Comments {
		for _, c := range g.List {
			if otherLinter.MatchString(c.Text) {
				bad("findings are silenced by //lint:ignore or //revive:disable-next-line, with the reason", s.at(c.Pos()), "has "+c.Text)
			}
		}
		if word := leftOver.FindString(g.Text()); word != "" {
			bad("work is finished or filed, not marked", s.at(g.Pos()), "comment says "+word)
		}
	}
	if s.test || s.program() {
		return out
	}

	local := importNames(s)
	ast.Inspect(s.file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			if !within(s.dir, []string{"internal/run"}) {
				bad("goroutines are started through internal/run", s.at(n.Pos()), "go statement")
			}
		case *ast.CallExpr:
			if id, ok := n.Fun.(*ast.Ident); ok && (id.Name == "print" || id.Name == "println") {
				bad("libraries print nothing", s.at(n.Pos()), "calls "+id.Name)
			}
		case *ast.FuncDecl:
			if n.Recv == nil && n.Name.Name == "init" {
				bad("importing a package does nothing", s.at(n.Pos()), "has an init function")
			}
		case *ast.SelectorExpr:
			id, ok := n.X.(*ast.Ident)
			if !ok {
				return true
			}
			what := id.Name + "." + n.Sel.Name
			switch pkg := local[id.Name]; {
			case pkg == "time" && n.Sel.Name == "Sleep":
				bad("libraries wait for events, not by time.Sleep", s.at(n.Pos()), "uses "+what)
			case pkg == "time" && within(s.dir, serverSide) && slices.Contains(serverTime, n.Sel.Name):
				bad("servers take their time from internal/clock", s.at(n.Pos()), "uses "+what)
			case pkg == "fmt" && slices.Contains(printing, n.Sel.Name),
				pkg == "os" && (n.Sel.Name == "Stdout" || n.Sel.Name == "Stderr"):
				bad("libraries print nothing", s.at(n.Pos()), "uses "+what)
			case pkg == "os" && n.Sel.Name == "Exit":
				bad("libraries do not end the process", s.at(n.Pos()), "uses "+what)
			case pkg == "slog" && n.Sel.Name == "Default":
				bad("libraries print nothing", s.at(n.Pos()), "uses "+what)
			}
		}
		return true
	})
	return out
}

// importNames maps the names under which a file sees packages to the last
// element of their import paths.
func importNames(s *source) map[string]string {
	names := make(map[string]string, len(s.imports))
	for i, spec := range s.file.Imports {
		base := path.Base(s.imports[i])
		if spec.Name != nil {
			names[spec.Name.Name] = base
		} else {
			names[base] = base
		}
	}
	return names
}

// checkLeakMain wants a TestMain that looks for leaked goroutines in every
// package that has tests.
func checkLeakMain(files []*source) (out []violation) {
	const rule = "every package's TestMain checks for leaked goroutines"
	has := map[string]bool{} // directory -> its TestMain calls leak.Main
	for _, s := range files {
		if !s.test || within(s.dir, []string{"interop"}) {
			continue // interop ends processes, and has its own TestMain
		}
		has[s.dir] = has[s.dir] || strings.Contains(string(s.text), "leak.Main(m)")
	}
	for dir, ok := range has {
		if !ok {
			out = append(out, violation{rule, path.Join(dir, "main_test.go"), "no call of leak.Main"})
		}
	}
	return out
}
