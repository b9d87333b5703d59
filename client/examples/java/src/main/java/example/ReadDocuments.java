// SPDX-License-Identifier: Apache-2.0
package example;

import com.google.protobuf.Any;
import com.google.protobuf.ByteString;
import com.google.protobuf.Duration;
import com.google.protobuf.InvalidProtocolBufferException;
import com.google.rpc.ErrorInfo;
import com.google.rpc.RetryInfo;
import io.grpc.Channel;
import io.grpc.ClientInterceptors;
import io.grpc.Grpc;
import io.grpc.InsecureChannelCredentials;
import io.grpc.ManagedChannel;
import io.grpc.Metadata;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import io.grpc.protobuf.StatusProto;
import io.grpc.stub.MetadataUtils;
import io.grpc.stub.StreamObserver;
import java.security.MessageDigest;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.Iterator;
import java.util.List;
import java.util.Optional;
import java.util.TreeSet;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.TimeUnit;
import java.util.function.Function;
import quire.v1.ArchiveGrpc;
import quire.v1.BatchItem;
import quire.v1.BatchReadRequest;
import quire.v1.BatchReadResponse;
import quire.v1.BatchResult;
import quire.v1.DocumentName;
import quire.v1.GetArchiveRequest;
import quire.v1.ReadRequest;
import quire.v1.ReadStreamResponse;

/**
 * Reads documents of an archive by their ids: the first one alone, then all in one batch.
 * ../README.md says what the examples show.
 *
 * <p>usage: ReadDocuments SERVER ARCHIVE ID...
 */
public final class ReadDocuments {
  // For errors without RetryInfo: a server that is down is reported soon.
  private static final int ATTEMPTS_MAX = 6;
  private static final long FIRST_DELAY_MS = 100;
  private static final long DEADLINE_SECONDS = 60;
  private static final String LIMIT_EXCEEDED = "LIMIT_EXCEEDED";
  private static final String ARCHIVE_OPENING = "ARCHIVE_OPENING";

  /** The bytes of a document, or the reason why there are none. */
  private record Answer(ByteString data, String reason) {}

  /** A proxy in front of several servers routes calls by these. */
  private static final Metadata.Key<String> ARCHIVE_KEY =
      Metadata.Key.of("quire-archive", Metadata.ASCII_STRING_MARSHALLER);
  private static final Metadata.Key<String> ATTEMPT_KEY =
      Metadata.Key.of("quire-attempt", Metadata.ASCII_STRING_MARSHALLER);

  private final ManagedChannel channel;
  private final String archive;

  private ReadDocuments(ManagedChannel channel, String archive) {
    this.channel = channel;
    this.archive = archive;
  }

  /** A channel for a call that ended with UNAVAILABLE so often before. */
  private Channel routed(int unavailable) {
    Metadata headers = new Metadata();
    headers.put(ARCHIVE_KEY, archive);
    if (unavailable > 0) {
      headers.put(ATTEMPT_KEY, Integer.toString(unavailable));
    }
    return ClientInterceptors.intercept(
        channel, MetadataUtils.newAttachHeadersInterceptor(headers));
  }

  private static ArchiveGrpc.ArchiveBlockingStub blocking(Channel routed) {
    return ArchiveGrpc.newBlockingStub(routed)
        .withDeadlineAfter(DEADLINE_SECONDS, TimeUnit.SECONDS);
  }

  private static <T extends com.google.protobuf.Message> Optional<T> detail(
      StatusRuntimeException error, Class<T> type) {
    com.google.rpc.Status status = StatusProto.fromThrowable(error);
    if (status == null) {
      return Optional.empty();
    }
    for (Any detail : status.getDetailsList()) {
      if (detail.is(type)) {
        try {
          return Optional.of(detail.unpack(type));
        } catch (InvalidProtocolBufferException malformed) {
          return Optional.empty();
        }
      }
    }
    return Optional.empty();
  }

  /** The name of the ErrorReason of a failed call. */
  private static String reasonOf(StatusRuntimeException error) {
    return detail(error, ErrorInfo.class)
        .filter(info -> info.getDomain().equals("quire"))
        .map(ErrorInfo::getReason)
        .orElse(error.getStatus().getCode().name());
  }

  /** Milliseconds until the call is repeated; empty if it must not be. */
  private static Optional<Long> delayAfter(StatusRuntimeException error, int failures) {
    Status.Code code = error.getStatus().getCode();
    if (code != Status.Code.UNAVAILABLE && code != Status.Code.RESOURCE_EXHAUSTED) {
      return Optional.empty();
    }
    Optional<RetryInfo> retry = detail(error, RetryInfo.class);
    if (retry.isPresent()) {
      Duration delay = retry.get().getRetryDelay();
      return Optional.of(delay.getSeconds() * 1000 + delay.getNanos() / 1_000_000);
    }
    // Without RetryInfo waiting does not help a request that is too large.
    return code == Status.Code.UNAVAILABLE && failures + 1 < ATTEMPTS_MAX
        ? Optional.of(FIRST_DELAY_MS << failures)
        : Optional.empty();
  }

  private <T> T withRetries(Function<Channel, T> call) throws InterruptedException {
    long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(DEADLINE_SECONDS);
    int unavailable = 0;
    for (int failures = 0; ; failures++) {
      try {
        return call.apply(routed(unavailable));
      } catch (StatusRuntimeException error) {
        // Another server would have to open the archive, too.
        if (error.getStatus().getCode() == Status.Code.UNAVAILABLE
            && !reasonOf(error).equals(ARCHIVE_OPENING)) {
          unavailable++;
        }
        Optional<Long> delay = delayAfter(error, failures);
        if (delay.isEmpty()
            || end - System.nanoTime() <= TimeUnit.MILLISECONDS.toNanos(delay.get())) {
          throw error;
        }
        Thread.sleep(delay.get());
      }
    }
  }

  private static DocumentName document(String id) {
    return DocumentName.newBuilder().setId(ByteString.copyFromUtf8(id)).build();
  }

  private ReadRequest request(String id) {
    return ReadRequest.newBuilder().setArchive(archive).setDocument(document(id)).build();
  }

  /** Reads one document in one message, or as a stream if it does not fit in one. */
  private Answer read(String id) throws InterruptedException {
    try {
      return new Answer(withRetries(to -> blocking(to).read(request(id))).getData(), null);
    } catch (StatusRuntimeException error) {
      if (reasonOf(error).equals(LIMIT_EXCEEDED)) {
        return readLarge(id);
      }
      if (error.getStatus().getCode() == Status.Code.NOT_FOUND) {
        return new Answer(null, reasonOf(error));
      }
      throw error;
    }
  }

  private Answer readLarge(String id) throws InterruptedException {
    return withRetries(
        to -> {
          ByteString data = ByteString.EMPTY;
          Iterator<ReadStreamResponse> messages = blocking(to).readStream(request(id));
          while (messages.hasNext()) {
            data = data.concat(messages.next().getData());
          }
          return new Answer(data, null);
        });
  }

  /** Reads many documents in the order that is fastest for the server. */
  private List<Answer> readBatch(List<String> ids) throws InterruptedException {
    GetArchiveRequest describe = GetArchiveRequest.newBuilder().setArchive(archive).build();
    int itemsMax =
        (int) withRetries(to -> blocking(to).getArchive(describe))
            .getLimits().getBatchMessageItemsMax();
    List<Answer> answers = new ArrayList<>();
    TreeSet<Long> pending = new TreeSet<>();
    for (long tag = 0; tag < ids.size(); tag++) {
      answers.add(null);
      pending.add(tag);
    }
    withRetries(
        to -> {
          batchOnce(to, ids, itemsMax, pending, answers);
          return null;
        });
    for (int index = 0; index < ids.size(); index++) {
      if (LIMIT_EXCEEDED.equals(answers.get(index).reason())) {
        answers.set(index, readLarge(ids.get(index)));
      }
    }
    return answers;
  }

  /** Asks for the pending documents; removes those that are answered. */
  private void batchOnce(
      Channel to, List<String> ids, int itemsMax, TreeSet<Long> pending, List<Answer> answers) {
    List<Long> tags = new ArrayList<>(pending);
    CompletableFuture<Void> end = new CompletableFuture<>();
    StreamObserver<BatchReadRequest> requests =
        ArchiveGrpc.newStub(to)
            .withDeadlineAfter(DEADLINE_SECONDS, TimeUnit.SECONDS)
            .batchRead(
                new StreamObserver<>() {
                  @Override
                  public void onNext(BatchReadResponse response) {
                    for (BatchResult result : response.getResultsList()) {
                      if (!pending.remove(result.getTag())) {
                        throw new IllegalStateException(
                            "an answer to nothing, tag " + result.getTag());
                      }
                      boolean isError = result.hasStatus() && result.getStatus().getCode() != 0;
                      answers.set(
                          (int) result.getTag(),
                          isError
                              ? new Answer(null, result.getStatus().getReason().name())
                              : new Answer(result.getData(), null));
                    }
                  }

                  @Override
                  public void onError(Throwable error) {
                    end.completeExceptionally(error);
                  }

                  @Override
                  public void onCompleted() {
                    end.complete(null);
                  }
                });
    // The server takes more items as its answers are read: they come on another thread.
    for (int at = 0; at < tags.size(); at += itemsMax) {
      BatchReadRequest.Builder request = BatchReadRequest.newBuilder().setArchive(archive);
      for (long tag : tags.subList(at, Math.min(tags.size(), at + itemsMax))) {
        request.addItems(
            BatchItem.newBuilder().setTag(tag).setDocument(document(ids.get((int) tag))));
      }
      requests.onNext(request.build());
    }
    requests.onCompleted();
    try {
      end.join();
    } catch (CompletionException error) {
      throw (StatusRuntimeException) error.getCause();
    }
    if (!pending.isEmpty()) {
      throw Status.DATA_LOSS
          .withDescription(pending.size() + " items have no answer").asRuntimeException();
    }
  }

  private static void show(String how, String id, Answer answer) throws Exception {
    if (answer.reason() != null) {
      System.out.println(how + " " + id + " error " + answer.reason());
      return;
    }
    byte[] digest = MessageDigest.getInstance("SHA-256").digest(answer.data().toByteArray());
    System.out.println(
        how + " " + id + " " + answer.data().size() + " " + HexFormat.of().formatHex(digest));
  }

  public static void main(String[] arguments) throws Exception {
    if (arguments.length < 3) {
      System.err.println("usage: ReadDocuments SERVER ARCHIVE ID...");
      System.exit(2);
    }
    List<String> ids = Arrays.asList(arguments).subList(2, arguments.length);
    // Repeats calls itself: gRPC's own retries know nothing of RetryInfo.
    ManagedChannel channel =
        Grpc.newChannelBuilder(arguments[0], InsecureChannelCredentials.create())
            .disableRetry().build();
    try {
      ReadDocuments reader = new ReadDocuments(channel, arguments[1]);
      show("read", ids.get(0), reader.read(ids.get(0)));
      List<Answer> answers = reader.readBatch(ids);
      for (int index = 0; index < ids.size(); index++) {
        show("batch", ids.get(index), answers.get(index));
      }
    } catch (StatusRuntimeException error) {
      System.err.println("ReadDocuments: " + reasonOf(error) + ": " + error.getMessage());
      System.exit(1);
    } finally {
      channel.shutdownNow();
    }
  }
}
