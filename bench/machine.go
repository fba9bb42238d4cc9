package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

// processCPU reads another process's user and system time, in steps of 10 ms.
// It is 0 where there is no /proc.
func processCPU(pid int) time.Duration {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(b), ") ")
	f := strings.Fields(rest)
	if len(f) < 13 {
		return 0
	}
	user, _ := strconv.Atoi(f[11])
	system, _ := strconv.Atoi(f[12])
	return time.Duration(user+system) * 10 * time.Millisecond
}

// socketCalls are the read and write calls that this process has made, almost
// all of them on sockets; 0 and 0 where there is no /proc.
func socketCalls() (reads, writes float64) {
	b, err := os.ReadFile("/proc/self/io")
	if err != nil {
		return 0, 0
	}
	for line := range strings.Lines(string(b)) {
		name, value, _ := strings.Cut(line, ":")
		n, _ := strconv.ParseFloat(strings.TrimSpace(value), 64)
		switch name {
		case "syscr":
			reads = n
		case "syscw":
			writes = n
		}
	}
	return reads, writes
}

// stolenTime is the time that the machine's host has taken from it and all of
// its time, in the kernel's unit; 0 and 0 where there is no /proc.
func stolenTime() (stolen, total float64) {
	b, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, 0
	}
	line, _, _ := strings.Cut(string(b), "\n")
	for i, s := range strings.Fields(line) {
		v, err := strconv.ParseFloat(s, 64)
		if err != nil {
			continue // the line's name
		}
		total += v
		if i == 8 {
			stolen = v
		}
	}
	return stolen, total
}

// printMachine says what the machine does without any client: one look tells
// whether two reports can be compared at all.
func printMachine(dir string) error {
	rtt, err := loopback()
	if err != nil {
		return err
	}
	sync, err := syncTime(dir)
	if err != nil {
		return err
	}
	fmt.Printf("%s %s/%s, %d CPUs; loopback round trip %v, sync to disk %v, 1 ms timer late by %v (medians)\n",
		runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), rtt, sync, timerLateness())
	return nil
}

// loopback is the median round trip of a byte between two goroutines over TCP.
func loopback() (d time.Duration, err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	go func() {
		c, err := l.Accept()
		if err == nil {
			_, _ = io.Copy(c, c)
			_ = c.Close()
		}
	}()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		return 0, err
	}
	defer c.Close()
	b := []byte{1}
	return medianOf(2000, func() error {
		if _, err := c.Write(b); err != nil {
			return err
		}
		_, err := io.ReadFull(c, b)
		return err
	})
}

// syncTime is the median time to make a written page durable.
func syncTime(dir string) (d time.Duration, err error) {
	f, err := os.CreateTemp(dir, "mqbench-sync-")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, f.Close(), os.Remove(f.Name())) }()
	page := make([]byte, 4096)
	return medianOf(50, func() error {
		if _, err := f.WriteAt(page, 0); err != nil {
			return err
		}
		return f.Sync()
	})
}

func timerLateness() time.Duration {
	var late []time.Duration
	for range 100 {
		t := time.Now()
		time.Sleep(time.Millisecond)
		late = append(late, time.Since(t)-time.Millisecond)
	}
	slices.Sort(late)
	return late[len(late)/2].Round(time.Microsecond)
}

func medianOf(n int, f func() error) (time.Duration, error) {
	took := make([]time.Duration, n)
	for i := range took {
		t := time.Now()
		if err := f(); err != nil {
			return 0, err
		}
		took[i] = time.Since(t)
	}
	slices.Sort(took)
	return took[n/2].Round(100 * time.Nanosecond), nil
}
