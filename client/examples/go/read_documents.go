// SPDX-License-Identifier: Apache-2.0

// Program read_documents reads documents of an archive by their ids: the first one alone,
// then all in one batch. ../README.md says what the examples show.
//
// usage: read_documents SERVER ARCHIVE ID...
package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"quire.example/read_documents/quirev1"
)

//go:generate protoc -I $QUIRE_PROTO --go_out=. --go-grpc_out=. --go_opt=module=quire.example/read_documents --go-grpc_opt=module=quire.example/read_documents --go_opt=Mquire/v1/archive.proto=quire.example/read_documents/quirev1 --go-grpc_opt=Mquire/v1/archive.proto=quire.example/read_documents/quirev1 --go_opt=Mquire/v1/wire_encoding.proto=quire.example/read_documents/quirev1 --go-grpc_opt=Mquire/v1/wire_encoding.proto=quire.example/read_documents/quirev1 quire/v1/archive.proto quire/v1/wire_encoding.proto

const (
	// For errors without RetryInfo: a server that is down is reported soon.
	attemptsMax    = 6
	firstDelay     = 100 * time.Millisecond
	deadline       = time.Minute
	limitExceeded  = "LIMIT_EXCEEDED"
	archiveOpening = "ARCHIVE_OPENING"
	quireErrorInfo = "quire"
)

type reader struct {
	client  quirev1.ArchiveClient
	archive string
}

// answer has the bytes of a document, or the reason why there are none.
type answer struct {
	data   []byte
	reason string
}

func document(id string) *quirev1.DocumentName {
	return &quirev1.DocumentName{Name: &quirev1.DocumentName_Id{Id: []byte(id)}}
}

// reasonOf returns the name of the ErrorReason of a failed call.
func reasonOf(err error) string {
	for _, detail := range status.Convert(err).Details() {
		if info, ok := detail.(*errdetails.ErrorInfo); ok && info.Domain == quireErrorInfo {
			return info.Reason
		}
	}
	return status.Code(err).String()
}

// delayAfter returns how long to wait before the call is repeated, and whether it may be.
func delayAfter(err error, failures int) (time.Duration, bool) {
	code := status.Code(err)
	if code != codes.Unavailable && code != codes.ResourceExhausted {
		return 0, false
	}
	for _, detail := range status.Convert(err).Details() {
		if retry, ok := detail.(*errdetails.RetryInfo); ok {
			return retry.RetryDelay.AsDuration(), true
		}
	}
	// Without RetryInfo waiting does not help a request that is too large.
	return firstDelay << failures, code == codes.Unavailable && failures+1 < attemptsMax
}

// withRetries calls with a context that has the metadata quire-attempt from the second attempt
// on, by which a proxy selects another server than before.
func withRetries(ctx context.Context, call func(ctx context.Context) error) error {
	unavailable := 0
	for failures := 0; ; failures++ {
		attempt := ctx
		if unavailable > 0 {
			attempt = metadata.AppendToOutgoingContext(ctx, "quire-attempt",
				strconv.Itoa(unavailable))
		}
		err := call(attempt)
		if err == nil {
			return nil
		}
		// Another server would have to open the archive, too.
		if status.Code(err) == codes.Unavailable && reasonOf(err) != archiveOpening {
			unavailable++
		}
		delay, mayRetry := delayAfter(err, failures)
		if end, limited := ctx.Deadline(); !mayRetry || limited && time.Until(end) <= delay {
			return err
		}
		time.Sleep(delay)
	}
}

// read reads one document in one message, or as a stream if it does not fit in one.
func (r *reader) read(ctx context.Context, id string) (answer, error) {
	var response *quirev1.ReadResponse
	err := withRetries(ctx, func(ctx context.Context) error {
		var err error
		response, err = r.client.Read(ctx, &quirev1.ReadRequest{
			Archive: r.archive, Target: &quirev1.ReadRequest_Document{Document: document(id)}})
		return err
	})
	if err == nil {
		return answer{data: response.Data}, nil
	}
	if reasonOf(err) == limitExceeded {
		return r.readLarge(ctx, id)
	}
	if status.Code(err) == codes.NotFound {
		return answer{reason: reasonOf(err)}, nil
	}
	return answer{}, err
}

func (r *reader) readLarge(ctx context.Context, id string) (answer, error) {
	var data []byte
	err := withRetries(ctx, func(ctx context.Context) error {
		data = nil
		stream, err := r.client.ReadStream(ctx, &quirev1.ReadRequest{
			Archive: r.archive, Target: &quirev1.ReadRequest_Document{Document: document(id)}})
		if err != nil {
			return err
		}
		for {
			message, err := stream.Recv()
			if errors.Is(err, io.EOF) {
				return nil
			}
			if err != nil {
				return err
			}
			data = append(data, message.Data...)
		}
	})
	return answer{data: data}, err
}

// readBatch reads many documents in the order that is fastest for the server.
func (r *reader) readBatch(ctx context.Context, ids []string) ([]answer, error) {
	described, err := r.describe(ctx)
	if err != nil {
		return nil, err
	}
	answers := make([]answer, len(ids))
	pending := map[uint64]bool{}
	for index := range ids {
		pending[uint64(index)] = true
	}
	err = withRetries(ctx, func(ctx context.Context) error {
		return r.batchOnce(ctx, ids, described.Limits.BatchMessageItemsMax, pending, answers)
	})
	if err != nil {
		return nil, err
	}
	for index, id := range ids {
		if answers[index].reason == limitExceeded {
			if answers[index], err = r.readLarge(ctx, id); err != nil {
				return nil, err
			}
		}
	}
	return answers, nil
}

func (r *reader) describe(ctx context.Context) (*quirev1.GetArchiveResponse, error) {
	var response *quirev1.GetArchiveResponse
	err := withRetries(ctx, func(ctx context.Context) error {
		var err error
		response, err = r.client.GetArchive(ctx, &quirev1.GetArchiveRequest{Archive: r.archive})
		return err
	})
	return response, err
}

// batchOnce asks for the pending documents; removes those that are answered.
func (r *reader) batchOnce(ctx context.Context, ids []string, itemsMax uint64,
	pending map[uint64]bool, answers []answer) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := r.client.BatchRead(ctx)
	if err != nil {
		return err
	}
	var items []*quirev1.BatchItem
	for tag := range pending {
		items = append(items, &quirev1.BatchItem{
			Tag: tag, Target: &quirev1.BatchItem_Document{Document: document(ids[tag])}})
	}
	// The server takes more items as its answers are read: send and receive at once.
	go func() {
		for len(items) > 0 {
			count := min(len(items), int(itemsMax))
			request := &quirev1.BatchReadRequest{Archive: &r.archive, Items: items[:count]}
			if stream.Send(request) != nil {
				// Recv returns the error.
				return
			}
			items = items[count:]
		}
		_ = stream.CloseSend()
	}()
	for {
		response, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			if len(pending) > 0 {
				return status.Errorf(codes.DataLoss, "%d items have no answer", len(pending))
			}
			return nil
		}
		if err != nil {
			return err
		}
		for _, result := range response.Results {
			if !pending[result.Tag] {
				return status.Errorf(codes.Internal, "an answer to nothing, tag %d", result.Tag)
			}
			delete(pending, result.Tag)
			answers[result.Tag] = answer{data: result.Data}
			if result.Status != nil && result.Status.Code != 0 {
				answers[result.Tag] = answer{reason: result.Status.Reason.String()}
			}
		}
	}
}

func show(how, id string, found answer) {
	if found.reason != "" {
		fmt.Println(how, id, "error", found.reason)
		return
	}
	fmt.Printf("%s %s %d %x\n", how, id, len(found.data), sha256.Sum256(found.data))
}

func run(server, archive string, ids []string) error {
	// Repeats calls itself: gRPC's own retries know nothing of RetryInfo.
	connection, err := grpc.NewClient(server, grpc.WithDisableRetry(),
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer connection.Close()
	ctx, cancel := context.WithTimeout(context.Background(), deadline)
	defer cancel()
	// A proxy in front of several servers routes calls by it.
	ctx = metadata.AppendToOutgoingContext(ctx, "quire-archive", archive)
	r := &reader{quirev1.NewArchiveClient(connection), archive}
	found, err := r.read(ctx, ids[0])
	if err != nil {
		return err
	}
	show("read", ids[0], found)
	answers, err := r.readBatch(ctx, ids)
	if err != nil {
		return err
	}
	for index, id := range ids {
		show("batch", id, answers[index])
	}
	return nil
}

func main() {
	if len(os.Args) < 4 {
		fmt.Fprintln(os.Stderr, "usage: read_documents SERVER ARCHIVE ID...")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2], os.Args[3:]); err != nil {
		fmt.Fprintf(os.Stderr, "read_documents: %s: %v\n", reasonOf(err), err)
		os.Exit(1)
	}
}
