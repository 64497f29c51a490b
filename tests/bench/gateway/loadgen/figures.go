package main

import (
	"math"
	"time"
)

const (
	bucket  = 10 * time.Microsecond
	buckets = 2_000_000 // 20 s; what takes longer counts as the last one
)

// Figures counts what happened since `reset`.
type Figures struct {
	began    time.Time
	cpu      float64
	count    int64
	bytes    int64
	slowest  time.Duration
	latency  []uint32
	failures map[string]int64
}

func newFigures() *Figures {
	figures := &Figures{latency: make([]uint32, buckets)}
	figures.reset()
	return figures
}

func (f *Figures) reset() {
	clear(f.latency)
	f.began, f.cpu, f.count, f.bytes, f.slowest = time.Now(), cpuSeconds(), 0, 0, 0
	f.failures = map[string]int64{}
}

func (f *Figures) add(took time.Duration, bytes int) {
	took = max(took, 0)
	f.count++
	f.bytes += int64(bytes)
	f.slowest = max(f.slowest, took)
	f.latency[min(int(took/bucket), buckets-1)]++
}

func (f *Figures) fail(why string) {
	if len(f.failures) < 20 || f.failures[why] > 0 {
		f.failures[why[:min(len(why), 300)]]++
	}
}

func (f *Figures) percentile(share float64) float64 {
	rank := int64(math.Ceil(share * float64(f.count)))
	var seen int64
	for index, count := range f.latency {
		seen += int64(count)
		if seen >= rank && count > 0 {
			return milliseconds(time.Duration(index+1) * bucket)
		}
	}
	return 0
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// report is what both modes answer with; latencies are in milliseconds.
func (f *Figures) report() map[string]any {
	seconds := time.Since(f.began).Seconds()
	return map[string]any{
		"event": "report", "seconds": seconds, "count": f.count, "per_second": float64(f.count) / seconds,
		"p50_ms": f.percentile(0.5), "p99_ms": f.percentile(0.99), "max_ms": milliseconds(f.slowest),
		"bytes_per_message": float64(f.bytes) / math.Max(float64(f.count), 1),
		"generator_cpu":     (cpuSeconds() - f.cpu) / seconds, "failures": f.failures,
	}
}
