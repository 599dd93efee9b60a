package scaling

// freeze forbids the move, or that down only:
//
//	FreezeScaleDown: replicas = max(replicas, current)
//	FreezeAll:       replicas = current
//
// It comes last, so that it holds against the bounds and the fallback too. The
// demand is still recorded and shown, and Desired is where the policy heads for
// when the freeze is over.
func (d *Decision) freeze(p *Policy, current int32) {
	if d.Replicas == current || p.Freeze == FreezeNone ||
		p.Freeze == FreezeScaleDown && d.Replicas > current {
		return
	}
	d.Replicas, d.Rule = current, RuleFrozen
}
