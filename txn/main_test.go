package txn_test

import (
	"testing"

	"github.com/gorocketmq/rocketmq/internal/leak"
)

func TestMain(m *testing.M) { leak.Main(m) }
