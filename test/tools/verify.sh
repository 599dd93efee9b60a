#!/usr/bin/env bash
# Checks, without touching the work tree, that generated files, the go.mod files
# and the formatting are what the commands that write them would write now.
set -o errexit -o nounset -o pipefail
cd "$(dirname "$0")/../.."
GO=${GO:-go}
MAKE=${MAKE:-make}

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failed=0

fail() {
	failed=1
	echo "verify: $*" >&2
}

# What git would commit: tracked files and new ones, but nothing ignored.
files() {
	git ls-files -z --cached --others --exclude-standard -- "$@" | while IFS= read -r -d '' file; do
		if [[ -e $file ]]; then printf '%s\0' "$file"; fi
	done
}

verify_generated() {
	echo "verify: generated files"
	mkdir "$scratch/now" "$scratch/anew"
	files | tar --null --files-from=- --create --file="$scratch/tree.tar"
	tar --extract --file="$scratch/tree.tar" --directory="$scratch/now"
	tar --extract --file="$scratch/tree.tar" --directory="$scratch/anew"
	if ! "$MAKE" --directory="$scratch/anew" generate GO="$GO" >"$scratch/generate.log" 2>&1; then
		cat "$scratch/generate.log" >&2
		fail "make generate fails"
		return
	fi
	if ! diff --recursive --unified --new-file --exclude=bin "$scratch/now" "$scratch/anew" >"$scratch/generated.diff"; then
		local file
		while IFS= read -r file; do
			fail "$file is stale; run make generate"
		done < <(sed -n "s#^+++ $scratch/anew/\([^	]*\).*#\1#p" "$scratch/generated.diff")
		sed "s#$scratch/##" "$scratch/generated.diff" | head -n 60 >&2
	fi
}

verify_modules() {
	local module
	while IFS= read -r -d '' module; do
		module=$(dirname "$module")
		echo "verify: $module/go.mod"
		# -diff prints what tidy would change, and changes nothing.
		if ! (cd "$module" && GOWORK=off "$GO" mod tidy -diff) >"$scratch/tidy.log" 2>&1; then
			head -n 40 "$scratch/tidy.log" >&2
			fail "$module/go.mod or go.sum is not tidy; run go mod tidy there"
		fi
	done < <(files 'go.mod' '*/go.mod')
}

verify_formatting() {
	echo "verify: gofmt"
	local file
	while IFS= read -r file; do
		fail "$file is not formatted; run gofmt -w on it"
	done < <(files '*.go' | xargs --null gofmt -l)
}

verify_formatting
verify_generated
verify_modules
if ((failed)); then
	exit 1
fi
echo "verify: all is up to date"
