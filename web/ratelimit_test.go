package web

import (
	"strings"
	"testing"
	"time"
)

func TestRateLimitSaysWhereATokenStands(t *testing.T) {
	w := newServer(t, strings.Replace(apiConfig, "requests_per_second: 1000000000", "requests_per_second: 3", 1))
	a, b := w.agent("default"), w.agent("default")
	for _, left := range []string{"2", "1", "0"} {
		h := a.submit(named("op-A"))
		if h.Code == 429 || h.Header().Get("RateLimit") != `"token";r=`+left+`;t=1` || h.Header().Get("RateLimit-Policy") != `"token";q=3;w=1` {
			t.Errorf("%d %v", h.Code, h.Header())
		}
	}
	for _, h := range []heard{a.submit(named("op-B")), a.get("/v1/operations/op-A"), a.intend(by("reference", "r")), a.run("run-9")} {
		h.is(t, 429, "rate_limited", "wait", false)
		if h.Header().Get("Retry-After") != "1" || !strings.Contains(h.text("detail"), "same operation_id") {
			t.Error(h.Header(), h.Body)
		}
	}
	a.absent("op-B")
	b.submit(named("op-A")).is(t, 409, "in_progress", "wait", false) // another token is not in the way
	w.pass(333 * time.Millisecond)
	a.get("/v1/operations/op-A").is(t, 429, "rate_limited", "wait", false)
	w.pass(time.Millisecond)
	a.submit(named("op-B")).is(t, 202, "", "wait", false)
	a.get("/v1/operations/op-B").is(t, 429, "rate_limited", "wait", false)
	w.pass(time.Hour) // it gathers one second's worth, and not an hour's
	b = w.agent("default")
	for range 3 {
		if h := b.get("/v1/operations/op-A"); h.Code != 200 {
			t.Error(h.Code)
		}
	}
	b.get("/v1/operations/op-A").is(t, 429, "rate_limited", "wait", false)
}

func TestRateLimitForgetsNobodyWhileThereIsRoom(t *testing.T) {
	var l rateLimit
	if left, ok := l.take("a", 1, 0); left != 0 || !ok {
		t.Fatal(left, ok)
	}
	for range 5 { // a clock that goes back gives nothing
		if _, ok := l.take("a", 1, -5000); ok {
			t.Fatal("more than the rate")
		}
	}
	for _, at := range []int64{-4001, -4000} {
		if _, ok := l.take("a", 1, at); ok != (at == -4000) {
			t.Error("after a step back, at ", at, ": ", ok)
		}
	}
}
