package prometheus

import (
	"context"
	"net"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestConnectionToATokenServerEndsByItself(t *testing.T) {
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, listener.Close()) })
	conn, err := tokenDialer(20*time.Millisecond)(t.Context(), "tcp", listener.Addr().String())
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, conn.Close()) })
	_, err = conn.Read(make([]byte, 1)) // nobody ever writes
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)

	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = tokenDialer(time.Minute)(ended, "tcp", listener.Addr().String())
	require.ErrorIs(t, err, context.Canceled)
}
