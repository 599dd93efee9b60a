package validate

import (
	"io"
	"maps"
	"net/url"
	"path/filepath"
	"slices"

	"example.com/platform/autoscale-operator/cmd/kubectl-autoscaler/internal/manifest"
)

// The parts of SARIF 2.1.0 that are used.
type (
	sarifLog struct {
		Schema  string     `json:"$schema"`
		Version string     `json:"version"`
		Runs    []sarifRun `json:"runs"`
	}
	sarifRun struct {
		Tool    sarifTool     `json:"tool"`
		Results []sarifResult `json:"results"`
	}
	sarifTool struct {
		Driver sarifDriver `json:"driver"`
	}
	sarifDriver struct {
		Name  string      `json:"name"`
		Rules []sarifRule `json:"rules"`
	}
	sarifRule struct {
		ID               string    `json:"id"`
		ShortDescription sarifText `json:"shortDescription"`
	}
	sarifText struct {
		Text string `json:"text"`
	}
	sarifResult struct {
		RuleID           string          `json:"ruleId"`
		Level            string          `json:"level"`
		Message          sarifText       `json:"message"`
		Locations        []sarifLocation `json:"locations"`
		RelatedLocations []sarifLocation `json:"relatedLocations,omitempty"`
	}
	sarifLocation struct {
		PhysicalLocation sarifPhysical `json:"physicalLocation"`
	}
	sarifPhysical struct {
		ArtifactLocation sarifArtifact `json:"artifactLocation"`
		Region           *sarifRegion  `json:"region,omitempty"`
	}
	sarifArtifact struct {
		URI string `json:"uri"`
	}
	sarifRegion struct {
		StartLine   int `json:"startLine"`
		StartColumn int `json:"startColumn,omitempty"`
	}
)

func writeSARIF(out io.Writer, r *Report) error {
	run := sarifRun{Tool: sarifTool{sarifDriver{Name: "kubectl-autoscaler"}}, Results: []sarifResult{}}
	for _, rule := range slices.Sorted(maps.Keys(ruleTexts)) {
		run.Tool.Driver.Rules = append(run.Tool.Driver.Rules, sarifRule{string(rule), sarifText{ruleTexts[rule]}})
	}
	for i := range r.Findings {
		f := &r.Findings[i]
		text := f.Text()
		if f.Object != "" {
			text = f.Object + ": " + text
		}
		result := sarifResult{RuleID: string(f.Rule), Level: string(f.Level), Message: sarifText{text}, Locations: []sarifLocation{located(f.Place)}}
		if f.See != nil {
			result.RelatedLocations = []sarifLocation{located(*f.See)}
		}
		run.Results = append(run.Results, result)
	}
	return indented(out, sarifLog{
		Schema: "https://json.schemastore.org/sarif-2.1.0.json", Version: "2.1.0", Runs: []sarifRun{run},
	})
}

func located(p manifest.Place) sarifLocation {
	l := sarifLocation{sarifPhysical{ArtifactLocation: sarifArtifact{(&url.URL{Path: filepath.ToSlash(p.File)}).String()}}}
	if p.Line > 0 {
		l.PhysicalLocation.Region = &sarifRegion{p.Line, p.Column}
	}
	return l
}
