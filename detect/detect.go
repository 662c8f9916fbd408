package detect

import "github.com/iptables-wrappers/iptables-wrappers/internal/evidence"

type Mode = evidence.Mode

const (
	NFT    = evidence.NFT
	Legacy = evidence.Legacy
)
