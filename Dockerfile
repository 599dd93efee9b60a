# The operator's image, for whoever has Docker (BuildKit) or buildah:
#
#   docker build --build-arg VERSION=v0.1.0 --tag autoscale-operator:v0.1.0 .
#
# `make image` makes one with the same programs without either; docs/release.md.

# The compiler is that of go.mod: another one gives other bytes.
ARG GO_VERSION=1.26.7

FROM --platform=$BUILDPLATFORM golang:${GO_VERSION} AS build
WORKDIR /src
# The modules are fetched anew only when they change.
COPY go.mod go.sum ./
RUN --mount=type=cache,target=/go/pkg/mod go mod download
COPY . .
ARG TARGETOS=linux
ARG TARGETARCH=amd64
ARG VERSION=v0.0.0-unreleased
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/root/.cache/go-build \
    CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH GOAMD64=v1 GOARM64=v8.0 GOFLAGS=-mod=readonly \
    go build -trimpath -buildvcs=false -ldflags="-s -w -X main.version=$VERSION" -o /out/ ./cmd/manager

# It holds certificates of public authorities and a user, and no shell.
FROM gcr.io/distroless/static:nonroot
ARG VERSION=v0.0.0-unreleased
LABEL org.opencontainers.image.title=autoscale-operator \
      org.opencontainers.image.version=$VERSION \
      org.opencontainers.image.licenses=Apache-2.0
COPY --from=build /out/ /
# A number, as runAsNonRoot cannot be held against a name.
USER 65532:65532
ENTRYPOINT ["/manager"]
