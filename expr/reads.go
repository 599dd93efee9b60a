package expr

import (
	"cmp"
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

// Element is the step of a path that stands for any element of a list.
const Element = "[]"

// Read is a field that an expression reads.
type Read struct {
	// Path from the variable to the field, with [Element] for elements of lists.
	Path []string
	// Line and Column of the place, both counted from 1.
	Line, Column int
}

// Reads gives the fields that an expression reads of a variable, in the order of the
// source: those it names, and those of the elements that its loops go over. A read
// counts however it is made, by has() too. What cannot be followed, such as a field
// of what a function gave, is left out.
func (p *Program) Reads(variable string) []Read {
	var reads []Read
	nodes := celast.MatchDescendants(celast.NavigateAST(p.ast), func(e celast.NavigableExpr) bool {
		return e.Kind() == celast.SelectKind || e.Kind() == celast.CallKind
	})
	for _, node := range nodes {
		path, ok := pathOf(node, variable)
		if !ok || path[len(path)-1] == Element {
			continue
		}
		at := p.ast.SourceInfo().GetStartLocation(node.ID())
		reads = append(reads, Read{Path: path, Line: at.Line(), Column: at.Column() + 1})
	}
	slices.SortStableFunc(reads, func(a, b Read) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return reads
}

// pathOf gives the path of what an expression selects from a variable.
func pathOf(e celast.NavigableExpr, variable string) ([]string, bool) {
	switch e.Kind() {
	case celast.IdentKind:
		return origin(e, variable)
	case celast.SelectKind:
		path, ok := pathOf(e.AsSelect().Operand().(celast.NavigableExpr), variable)
		return append(path, e.AsSelect().FieldName()), ok
	case celast.CallKind:
		call := e.AsCall()
		if len(call.Args()) != 2 {
			return nil, false
		}
		operand := call.Args()[0].(celast.NavigableExpr)
		name, ok := fieldOf(e, operand)
		if !ok {
			if call.FunctionName() != operators.Index && call.FunctionName() != operators.OptIndex ||
				call.Args()[1].Kind() != celast.LiteralKind {
				return nil, false
			}
			name = Element // by its number
		}
		path, ok := pathOf(operand, variable)
		return append(path, name), ok
	}
	return nil, false
}

// origin gives the path of what a name stands for: the variable itself, or an element
// of what the loop around it goes over.
func origin(ident celast.NavigableExpr, variable string) ([]string, bool) {
	name := ident.AsIdent()
	for node := ident; ; {
		parent, ok := node.Parent()
		if !ok {
			return nil, name == variable
		}
		if parent.Kind() == celast.ComprehensionKind {
			loop := parent.AsComprehension()
			over := loop.IterRange().(celast.NavigableExpr)
			element := loop.IterVar()
			if loop.HasIterVar2() {
				element = loop.IterVar2()
			}
			switch {
			case over.ID() == node.ID():
			case name == element:
				path, ok := pathOf(over, variable)
				return append(path, Element), ok
			case name == loop.IterVar(), name == loop.AccuVar():
				return nil, false
			}
		}
		node = parent
	}
}
