package prometheus

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxExcerpt is the number of bytes of a server's text that people get to see.
const maxExcerpt = 256

var (
	// address matches a URL, what is at a host, an IP address, a host with a port, and
	// a domain name of three labels or more.
	address = regexp.MustCompile(`[A-Za-z][A-Za-z0-9+.-]*://[^\s"'<>]+` +
		`|[^\s"'<>@]+@[^\s"'<>]+` +
		`|\[?([0-9A-Fa-f]{0,4}:){3,7}[0-9A-Fa-f]{0,4}\]?(:\d+)?` +
		`|\b\d{1,3}(\.\d{1,3}){3}(:\d+)?\b` +
		`|\b[A-Za-z][A-Za-z0-9.-]*:\d{2,5}\b` +
		`|\b[A-Za-z0-9-]+(\.[A-Za-z0-9-]+){2,}\b`)
	credential = regexp.MustCompile(`(?i)\b(bearer|basic)\s+[A-Za-z0-9._~+/=-]+` +
		`|\beyJ[\w-]{5,}(\.[\w-]*)*` + // a JSON web token
		`|\b(set-)?cookie\s*:.*` +
		`|\b[\w-]*(password|passwd|pwd|secret|token|api[-_]?key)[\w-]*[\\"']*\s*[=:!~]+\s*` +
		`("[^"]*"?|'[^']*'?|[\\"']*[^\s,;"'\\]+)`)
)

// excerpt makes a text of others fit for people to see: one line, without
// control characters, addresses and credentials, and short.
func excerpt(text string) string {
	// Enough for the excerpt after the removals, and a bound on their cost.
	text = clip(text, 16*maxExcerpt)
	text = strings.Map(func(r rune) rune {
		switch {
		case r == utf8.RuneError:
			return -1
		case unicode.IsSpace(r):
			return ' '
		case !unicode.IsPrint(r):
			return -1
		}
		return r
	}, text)
	text = credential.ReplaceAllString(text, "[credential]")
	text = address.ReplaceAllString(text, "[address]")
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > maxExcerpt {
		text = clip(text, maxExcerpt-len("…")) + "…"
	}
	return text
}

// clip cuts a text to at most n bytes, between characters.
func clip(text string, n int) string {
	if len(text) <= n {
		return text
	}
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n]
}
