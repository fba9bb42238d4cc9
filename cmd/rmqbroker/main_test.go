package main

import (
	"os"
	"testing"

	"github.com/gorocketmq/rocketmq/internal/leak"
)

// TestMain is the program itself when a test runs this binary as a process of
// its own.
func TestMain(m *testing.M) {
	if os.Getenv("RMQBROKER_TEST_MAIN") != "" {
		main()
	}
	leak.Main(m)
}
