package expr

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common"
	celast "github.com/google/cel-go/common/ast"
	"k8s.io/apimachinery/pkg/util/version"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/environment"
)

// Bounds of an expression.
const (
	// MaxSourceBytes is the longest expression that is compiled.
	MaxSourceBytes = 16 * 1024
	// CostLimit is the most that one evaluation may cost, in CEL's cost units. It
	// is the API server's limit of one call, meant to be about 0.1 s; loops in
	// loops over dynamic values were seen to take a second.
	CostLimit = celconfig.PerCallLimit

	maxIssues       = 5   // compile errors that are told at once
	maxExcerptBytes = 240 // longest line that is shown with a caret below
)

// apiServer is the version of the API server whose dialect is spoken: the one
// that go.mod's k8s.io/apiserver is of.
var apiServer = version.MajorMinor(1, 37)

// Result is the type that an expression must have.
type Result int

// Types of results.
const (
	// Bool gives a Go bool.
	Bool Result = iota + 1
	// String gives a Go string of at most [MaxStringBytes].
	String
	// List gives a Go []any of at most [MaxValues] values.
	List
)

// String names the type as CEL does.
func (r Result) String() string {
	switch r {
	case Bool:
		return "bool"
	case String:
		return "string"
	case List:
		return "list"
	default:
		return fmt.Sprintf("Result(%d)", int(r))
	}
}

func (r Result) kind() (cel.Kind, error) {
	switch r {
	case Bool:
		return cel.BoolKind, nil
	case String:
		return cel.StringKind, nil
	case List:
		return cel.ListKind, nil
	default:
		return 0, fmt.Errorf("%v is no type of a result", r)
	}
}

// Program is a compiled expression.
type Program struct {
	program cel.Program
	ast     *celast.AST
	result  Result
}

// Compile parses and checks an expression over the given variables, all of type
// dyn. An expression whose type is not result, or dyn (which is then checked at
// every evaluation), is refused. The error says for each mistake its line and
// column, both counted from 1, and shows the place.
func Compile(source string, result Result, variables ...string) (*Program, error) {
	kind, err := result.kind()
	if err != nil {
		return nil, err
	}
	if err := checkSource(source); err != nil {
		return nil, err
	}
	env, err := environmentOf(variables)
	if err != nil {
		return nil, err
	}
	checked, issues := env.Compile(source)
	if issues.Err() != nil {
		return nil, describe(issues, source)
	}
	if got := checked.OutputType(); got.Kind() != kind && got.Kind() != cel.DynKind && got.Kind() != cel.AnyKind {
		return nil, fmt.Errorf("the expression must give a %s, but it gives a %s", result, cel.FormatCELType(got))
	}
	program, err := env.Program(checked,
		cel.CostLimit(CostLimit),
		cel.InterruptCheckFrequency(celconfig.CheckFrequency),
	)
	if err != nil {
		return nil, fmt.Errorf("the expression cannot be prepared: %w", err)
	}
	return &Program{program: program, ast: checked.NativeRep(), result: result}, nil
}

func checkSource(source string) error {
	switch {
	case strings.TrimSpace(source) == "":
		return errors.New("the expression is empty")
	case len(source) > MaxSourceBytes:
		return fmt.Errorf("the expression has %d bytes; at most %d are compiled", len(source), MaxSourceBytes)
	case !utf8.ValidString(source):
		return errors.New("the expression is not valid UTF-8")
	}
	return nil
}

// environmentOf gives the environment in which the API server runs expressions
// that it has stored. Configuration has the same need: what once compiled goes on
// compiling.
func environmentOf(variables []string) (*cel.Env, error) {
	options := make([]cel.EnvOption, 0, len(variables))
	for _, name := range variables {
		options = append(options, cel.Variable(name, cel.DynType))
	}
	return environment.MustBaseEnvSet(apiServer).StoredExpressionsEnv().Extend(options...)
}

// describe tells the first mistakes, each with its place.
func describe(issues *cel.Issues, source string) error {
	text := common.NewTextSource(source)
	all := issues.Errors()
	var lines []string
	for i, issue := range all {
		if i == maxIssues {
			lines = append(lines, fmt.Sprintf("and %d more", len(all)-i))
			break
		}
		lines = append(lines, show(issue, text))
	}
	return errors.New(strings.Join(lines, "\n"))
}

func show(issue *common.Error, source common.Source) string {
	if line, ok := source.Snippet(issue.Location.Line()); ok && len(line) <= maxExcerptBytes {
		shown := issue.ToDisplayString(source)
		return "at " + strings.TrimPrefix(shown, fmt.Sprintf("ERROR: %s:", source.Description()))
	}
	return fmt.Sprintf("at %d:%d: %s", issue.Location.Line(), issue.Location.Column()+1, issue.Message)
}
