package cluster

import (
	"fmt"
	"os"
)

// egressConfig makes the API server reach Services, such as those of webhooks, through
// somebody who listens on a Unix socket for HTTP CONNECT.
const egressConfig = `apiVersion: apiserver.k8s.io/v1beta1
kind: EgressSelectorConfiguration
egressSelections:
- name: cluster
  connection:
    proxyProtocol: HTTPConnect
    transport:
      uds:
        udsName: %q
`

func (s *starter) egressFlags() ([]string, error) {
	if s.options.ServiceSocket == "" {
		return nil, nil
	}
	path := s.path("egress.yaml")
	if err := os.WriteFile(path, fmt.Appendf(nil, egressConfig, s.options.ServiceSocket), 0o600); err != nil {
		return nil, err
	}
	return []string{"--egress-selector-config-file=" + path}, nil
}
