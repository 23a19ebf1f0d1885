package web

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/labstack/echo/v4"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"holdfast/store/ledger"
)

// The write API over the Model Context Protocol: streamable HTTP, without
// sessions, so that an agent that comes back after a lost answer needs nothing
// but its token and its operation_id. A tool does what its HTTP call does, by the
// same function; what differs is how the answer is wrapped.

// roomForMessage is what the protocol may put round the arguments of a tool, for
// which the bound of a body holds.
const roomForMessage = 16 << 10

// mcpMethods are what a client may ask for. A server that never speaks first has
// nothing to subscribe to.
var mcpMethods = []string{"initialize", "server/discover", "ping", "tools/list", "tools/call"}

// mcpInstructions is what a model reads before it sees a tool.
const mcpInstructions = `holdfast sends each wanted write once and finds out what became of it. One purchase has one operation_id, for ever.
Name the purchase once, when it is decided, store the name, and then call submit_*. Whatever goes wrong (an error, a timeout, a lost
session, a restart, you are not sure), call the same tool again with the same operation_id and the same payload: that never pays twice.
Never make up another operation_id for the same purchase.
Every result has "next"; do what it says. wait: call get_operation after retry_after seconds. await_approval, await_human: a person must
decide; call get_operation later and do not submit again. use_result: it happened, "result" is the receipt. stop: nothing more is yours
to do; tell the person you work for what "detail" says. fix_request: correct what "detail", "pointer" or "errors" name and call again
with the same operation_id. "unknown" means that it may have happened and is being looked up: never treat it as not done.
People approve and settle on their own pages; no tool does it.`

// routeMCP wires the endpoint. GET, by which a server could speak first, and
// DELETE, which ends a session, are answered 405.
func (s *Server) routeMCP(e *echo.Echo) { e.POST("/mcp", s.speakMCP) }

// speakMCP answers one message of the protocol. What is wrong with the request
// itself is a problem over HTTP; what is wrong with a call is its tool's result.
func (s *Server) speakMCP(c echo.Context) error {
	who, err := s.identify(c.Request())
	if err != nil {
		return err
	}
	if rebound(c.Request()) {
		return problemf("forbidden", "The request came from a page of another site. Nothing was recorded or sent.")
	}
	body, err := readJSONBody(c, maxBody+roomForMessage)
	if err != nil {
		return err
	}
	if !jsontext.Value(body).IsValid() { // duplicate names and broken Unicode, as everywhere
		_, err := ledger.ParseStrict(body)
		return malformed(err)
	}
	r := c.Request()
	r.Body = io.NopCloser(bytes.NewReader(body))
	server := s.mcpServer(mcpRequest{who, requestIDOf(c), traceparent(r)}, calledTool(body))
	mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, &mcp.StreamableHTTPOptions{
		Stateless: true, JSONResponse: true, PropagateRequestCancellation: true, MaxRequestBodyBytes: maxBody + roomForMessage,
		// A proxy on this machine keeps the Host that the world knows; rebound looks
		// at what only a browser sends.
		DisableLocalhostProtection: true,
	}).ServeHTTP(c.Response(), r)
	return nil
}

// rebound reports whether a browser reached this machine's own address under a
// name from elsewhere: a page that had its name led here after it was loaded.
// Its Origin is then the same as the Host, and nothing else gives it away.
func rebound(r *http.Request) bool {
	if r.Header.Get("Origin") == "" && r.Header.Get("Sec-Fetch-Site") == "" {
		return false // no browser
	}
	local, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	return local != nil && isLoopback(local.String()) && !isLoopback(r.Host)
}

// isLoopback reports whether an address, with or without its port, is this
// machine's own.
func isLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		host = strings.Trim(address, "[]")
	}
	ip := net.ParseIP(host)
	return strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}

// mcpRequest is what a tool knows of the request. It may outlive it: a client
// that has gone leaves its call behind for a moment, and echo gives the context
// of a request that has ended to the next.
type mcpRequest struct {
	who       caller
	id, trace string
}

// calledTool is the one tool that a message is about; empty where it is about
// none, or about several.
func calledTool(body []byte) string {
	var message struct {
		Method string
		Params struct{ Name string }
	}
	if json.Unmarshal(body, &message) != nil || message.Method != "tools/call" {
		return ""
	}
	return message.Params.Name
}

// mcpServer has the tools of one request's caller. The library reads a tool's
// schema each time that it is given one, and so it is given only what is called.
func (s *Server) mcpServer(q mcpRequest, called string) *mcp.Server {
	server := mcp.NewServer(&mcp.Implementation{Name: "holdfast", Title: "holdfast", Version: "1"}, &mcp.ServerOptions{
		Instructions: mcpInstructions,
		Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{}},
	})
	tools := s.tools(q.who.TenantID)
	for _, t := range tools {
		if called == "" || called == t.name {
			server.AddTool(t.described(), s.callTool(q, t))
		}
	}
	server.AddReceivingMiddleware(s.guardMCP(q.who, tools))
	return server
}

// guardMCP counts requests against the token's rate, and lists to a token what it
// may use. A tool that is not listed still answers, as its HTTP call would.
func (s *Server) guardMCP(who caller, tools []tool) mcp.Middleware {
	return func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			if strings.HasPrefix(method, "notifications/") {
				return next(ctx, method, req)
			}
			if !slices.Contains(mcpMethods, method) {
				return nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "holdfast has tools, and nothing else"}
			}
			if perSecond := s.Config().Limits.RequestsPerSecond; perSecond > 0 {
				if _, ok := s.rates.take(who.ID, perSecond, s.Store.Now()); !ok && method == "tools/call" {
					return toolResult(answer{}, rateLimited()), nil
				} else if !ok {
					return nil, &jsonrpc.Error{Code: tooManyRequests, Message: rateLimited().text()}
				}
			}
			result, err := next(ctx, method, req)
			if listed, ok := result.(*mcp.ListToolsResult); ok && err == nil {
				listed.Tools = slices.DeleteFunc(listed.Tools, func(t *mcp.Tool) bool {
					i := slices.IndexFunc(tools, func(own tool) bool { return own.name == t.Name })
					return i < 0 || !tools[i].isFor(who)
				})
			}
			return result, err
		}
	}
}

// tooManyRequests is in the range that JSON-RPC leaves to servers.
const tooManyRequests = -32029

// callTool answers a call by the function that its HTTP call has. The protocol's
// library runs it on a goroutine of its own, which no other recovery covers.
func (s *Server) callTool(q mcpRequest, t tool) mcp.ToolHandler {
	return func(ctx context.Context, req *mcp.CallToolRequest) (result *mcp.CallToolResult, _ error) {
		start, outcome := time.Now(), "answered"
		defer func() {
			if p := recover(); p != nil {
				s.Log.Error("a tool panicked", "request_id", q.id, "tool", t.name, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
				result, outcome = toolResult(answer{}, newProblem("internal", "")), "internal"
			}
			s.Log.Info("tool", "request_id", q.id, "tool", t.name, "outcome", outcome, "ms", time.Since(start).Milliseconds())
		}()
		a, err := s.useTool(ctx, q, t, req.Params.Arguments)
		if err == nil {
			return toolResult(a, nil), nil
		}
		p := s.problemOf(err, q.id, "/mcp")
		outcome = p.Reason
		return toolResult(answer{}, p), nil
	}
}

func (s *Server) useTool(ctx context.Context, q mcpRequest, t tool, arguments []byte) (answer, error) {
	if err := q.who.holds(t.scope); err != nil {
		return answer{}, err
	}
	if len(arguments) > maxBody {
		return answer{}, newProblem("body_too_large", "")
	}
	if len(arguments) == 0 || string(arguments) == "null" {
		arguments = []byte("{}")
	}
	in, err := decodeMembers(arguments, t.names()...)
	if err != nil {
		return answer{}, err
	}
	return t.call(toolCall{ctx, q.who, in, q.trace})
}

// toolResult wraps an answer, or the problem that there is instead: once as data
// for programs, and once as text for models.
func toolResult(a answer, err error) *mcp.CallToolResult {
	p, failed := err.(problem)
	if failed {
		a.body = p.body()
	}
	text, err := rendered(a.body)
	if err != nil { // every body is a struct of ours that can be rendered
		panic(err)
	}
	text = bytes.TrimSpace(text)
	return &mcp.CallToolResult{IsError: failed, StructuredContent: json.RawMessage(text), Content: []mcp.Content{&mcp.TextContent{Text: string(text)}}}
}
