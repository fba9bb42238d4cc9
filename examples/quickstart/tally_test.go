package main

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestTallyCountsEachMessageOnce(t *testing.T) {
	ta := newTally(100)
	for seq := range 100 {
		ta.sending(seq)
		ta.acknowledged(seq)
	}
	require.Equal(t, 100, ta.missing())
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			for seq := range 99 {
				ta.received(seq)
			}
		})
	}
	wg.Wait()
	require.EqualValues(t, 100, ta.sent.Load())
	require.EqualValues(t, 99, ta.arrived.Load())
	require.EqualValues(t, 2*99, ta.again.Load())
	require.Equal(t, 1, ta.missing())
	require.Len(t, ta.sendTimes(), 100)
	require.Len(t, ta.transitTimes(), 99)
	<-ta.moved
}

func TestMissingIgnoresWhatNoBrokerAcknowledged(t *testing.T) {
	ta := newTally(2)
	ta.sending(0)
	ta.sending(1)
	ta.acknowledged(1)
	ta.received(1)
	require.Zero(t, ta.missing())
}

func TestQuantile(t *testing.T) {
	require.Zero(t, quantile(nil, 0.5))
	var d []time.Duration
	for i := range 100 {
		d = append(d, time.Duration(i+1))
	}
	for share, want := range map[float64]time.Duration{0: 1, 0.5: 51, 0.99: 100, 1: 100} {
		require.Equal(t, want, quantile(d, share), share)
	}
}

func TestOnceKeepsTheFirstMoment(t *testing.T) {
	o := newOnce()
	o.now()
	<-o.done
	first := o.at
	o.now()
	require.Equal(t, first, o.at)
}
