package expr

import (
	"slices"

	celast "github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
)

// Uses says whether the expression reads a variable. A variable of a macro that
// has the same name counts too.
func (p *Program) Uses(variable string) bool {
	for _, ref := range p.ast.ReferenceMap() {
		if ref.Name == variable {
			return true
		}
	}
	return false
}

// Paths gives what the expression reads of a variable, as paths of field names,
// sorted: two values of the variable that are equal at every path give the same
// result. A path ends where the expression takes a value as a whole, goes over
// its elements or picks one by a key that is no literal; the empty path is the
// variable itself.
func (p *Program) Paths(variable string) [][]string {
	reads := celast.MatchDescendants(celast.NavigateAST(p.ast), func(e celast.NavigableExpr) bool {
		return e.Kind() == celast.IdentKind && e.AsIdent() == variable
	})
	var paths [][]string
	for _, read := range reads {
		path := []string{}
		for node := read; ; {
			parent, ok := node.Parent()
			if !ok {
				break
			}
			name, ok := fieldOf(parent, node)
			if !ok {
				break
			}
			path, node = append(path, name), parent
		}
		paths = append(paths, path)
	}
	slices.SortFunc(paths, slices.Compare)
	return slices.CompactFunc(paths, slices.Equal)
}

// fieldOf gives the name of the field that parent selects from operand:
// operand.a, operand.?a, operand['a'], operand[?'a'] and has(operand.a).
func fieldOf(parent, operand celast.NavigableExpr) (string, bool) {
	switch parent.Kind() {
	case celast.SelectKind:
		return parent.AsSelect().FieldName(), true
	case celast.CallKind:
		call := parent.AsCall()
		switch call.FunctionName() {
		case operators.Index, operators.OptIndex, operators.OptSelect:
		default:
			return "", false
		}
		args := call.Args()
		if len(args) != 2 || args[0].ID() != operand.ID() || args[1].Kind() != celast.LiteralKind {
			return "", false
		}
		name, ok := args[1].AsLiteral().(types.String)
		return string(name), ok
	}
	return "", false
}
