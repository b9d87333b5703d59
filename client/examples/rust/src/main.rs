// SPDX-License-Identifier: Apache-2.0

//! Reads documents of an archive by their ids: the first one alone, then all in one batch.
//! ../README.md says what the examples show.
//!
//! usage: read_documents SERVER ARCHIVE ID...

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use sha2::{Digest, Sha256};
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Request, Status};
use tonic_types::StatusExt;

mod quire {
    tonic::include_proto!("quire.v1");
}

use quire::archive_client::ArchiveClient;
use quire::{
    BatchItem, BatchReadRequest, DocumentName, ErrorReason, GetArchiveRequest, ReadRequest,
    batch_item, document_name, read_request,
};

// For errors without RetryInfo: a server that is down is reported soon.
const ATTEMPTS_MAX: u32 = 6;
const FIRST_DELAY: Duration = Duration::from_millis(100);
const DEADLINE: Duration = Duration::from_secs(60);
const LIMIT_EXCEEDED: &str = "LIMIT_EXCEEDED";
const ARCHIVE_OPENING: &str = "ARCHIVE_OPENING";

/// The bytes of a document, or the reason why there are none.
type Answer = Result<Vec<u8>, String>;

fn document(id: &str) -> DocumentName {
    DocumentName {
        name: Some(document_name::Name::Id(id.as_bytes().to_vec())),
        ..Default::default()
    }
}

/// The name of the ErrorReason of a failed call.
fn reason_of(status: &Status) -> String {
    match status.get_details_error_info() {
        Some(info) if info.domain == "quire" => info.reason,
        _ => format!("{:?}", status.code()),
    }
}

/// How long to wait before the call is repeated; None if it must not be.
fn delay_after(status: &Status, failures: u32) -> Option<Duration> {
    if !matches!(status.code(), Code::Unavailable | Code::ResourceExhausted) {
        return None;
    }
    if let Some(delay) = status.get_details_retry_info().and_then(|retry| retry.retry_delay) {
        return Some(delay);
    }
    // Without RetryInfo waiting does not help a request that is too large.
    let may_retry = status.code() == Code::Unavailable && failures + 1 < ATTEMPTS_MAX;
    may_retry.then(|| FIRST_DELAY * 2u32.pow(failures))
}

/// Calls with the number of attempts before that ended with UNAVAILABLE.
async fn with_retries<T>(
    mut call: impl AsyncFnMut(u32) -> Result<T, Status>,
) -> Result<T, Status> {
    let end = Instant::now() + DEADLINE;
    let mut failures = 0;
    let mut unavailable = 0;
    loop {
        let status = match call(unavailable).await {
            Ok(answer) => return Ok(answer),
            Err(status) => status,
        };
        // Another server would have to open the archive, too.
        if status.code() == Code::Unavailable && reason_of(&status) != ARCHIVE_OPENING {
            unavailable += 1;
        }
        match delay_after(&status, failures) {
            Some(delay) if Instant::now() + delay < end => tokio::time::sleep(delay).await,
            _ => return Err(status),
        }
        failures += 1;
    }
}

struct Reader {
    client: ArchiveClient<Channel>,
    archive: String,
}

impl Reader {
    fn request(&self, id: &str) -> ReadRequest {
        ReadRequest {
            archive: self.archive.clone(),
            target: Some(read_request::Target::Document(document(id))),
            ..Default::default()
        }
    }

    /// A request with the metadata by which a proxy in front of several servers routes calls.
    fn routed<T>(&self, message: T, unavailable: u32) -> Request<T> {
        let mut request = Request::new(message);
        if unavailable > 0 {
            request.metadata_mut().insert("quire-attempt", unavailable.into());
        }
        if let Ok(name) = self.archive.parse() {
            request.metadata_mut().insert("quire-archive", name);
        }
        request
    }

    /// Reads one document in one message, or as a stream if it does not fit in one.
    async fn read(&self, id: &str) -> Result<Answer, Status> {
        let read = with_retries(async |unavailable| {
            self.client.clone().read(self.routed(self.request(id), unavailable)).await
        })
        .await;
        match read {
            Ok(response) => Ok(Ok(response.into_inner().data)),
            Err(status) if reason_of(&status) == LIMIT_EXCEEDED => self.read_large(id).await,
            Err(status) if status.code() == Code::NotFound => Ok(Err(reason_of(&status))),
            Err(status) => Err(status),
        }
    }

    async fn read_large(&self, id: &str) -> Result<Answer, Status> {
        with_retries(async |unavailable| {
            let mut data = Vec::new();
            let mut client = self.client.clone();
            let request = self.routed(self.request(id), unavailable);
            let mut stream = client.read_stream(request).await?.into_inner();
            while let Some(message) = stream.message().await? {
                data.extend_from_slice(&message.data);
            }
            Ok(Ok(data))
        })
        .await
    }

    /// Reads many documents in the order that is fastest for the server.
    async fn read_batch(&self, ids: &[String]) -> Result<Vec<Answer>, Status> {
        let request = GetArchiveRequest { archive: self.archive.clone() };
        let described = with_retries(async |unavailable| {
            self.client.clone().get_archive(self.routed(request.clone(), unavailable)).await
        })
        .await?;
        let limits = described.into_inner().limits.unwrap_or_default();
        let mut answers: Vec<Answer> = vec![Ok(Vec::new()); ids.len()];
        let mut pending: BTreeSet<u64> = (0..ids.len() as u64).collect();
        with_retries(async |unavailable| {
            let items_max = limits.batch_message_items_max.max(1) as usize;
            self.batch_once(unavailable, ids, items_max, &mut pending, &mut answers).await
        })
        .await?;
        for (id, answer) in ids.iter().zip(&mut answers) {
            if answer.as_ref().is_err_and(|reason| reason == LIMIT_EXCEEDED) {
                *answer = self.read_large(id).await?;
            }
        }
        Ok(answers)
    }

    /// Asks for the pending documents; removes those that are answered.
    async fn batch_once(
        &self,
        unavailable: u32,
        ids: &[String],
        items_max: usize,
        pending: &mut BTreeSet<u64>,
        answers: &mut [Answer],
    ) -> Result<(), Status> {
        let items: Vec<BatchItem> = pending
            .iter()
            .map(|&tag| BatchItem {
                tag,
                target: Some(batch_item::Target::Document(document(&ids[tag as usize]))),
            })
            .collect();
        let requests: Vec<BatchReadRequest> = items
            .chunks(items_max)
            .map(|items| BatchReadRequest {
                archive: Some(self.archive.clone()),
                items: items.to_vec(),
                ..Default::default()
            })
            .collect();
        // The server takes more items as its answers are read: tonic sends and receives at once.
        let mut client = self.client.clone();
        let requests = self.routed(tokio_stream::iter(requests), unavailable);
        let mut stream = client.batch_read(requests).await?.into_inner();
        while let Some(message) = stream.message().await? {
            for result in message.results {
                if !pending.remove(&result.tag) {
                    return Err(Status::internal(format!("an answer to nothing, tag {}", result.tag)));
                }
                answers[result.tag as usize] = match &result.status {
                    Some(status) if status.code != 0 => Err(reason_name(status.reason)),
                    _ => Ok(result.data),
                };
            }
        }
        if pending.is_empty() {
            return Ok(());
        }
        Err(Status::data_loss(format!("{} items have no answer", pending.len())))
    }
}

fn reason_name(number: i32) -> String {
    ErrorReason::try_from(number)
        .map_or_else(|_| number.to_string(), |reason| reason.as_str_name().to_string())
}

fn show(how: &str, id: &str, answer: &Answer) {
    match answer {
        Err(reason) => println!("{how} {id} error {reason}"),
        Ok(data) => {
            let digest: String =
                Sha256::digest(data).iter().map(|byte| format!("{byte:02x}")).collect();
            println!("{how} {id} {} {digest}", data.len());
        }
    }
}

async fn run(server: &str, archive: &str, ids: &[String]) -> Result<(), Status> {
    let endpoint = Endpoint::from_shared(format!("http://{server}"))
        .map_err(|error| Status::invalid_argument(error.to_string()))?
        .timeout(DEADLINE);
    let client = ArchiveClient::new(endpoint.connect_lazy());
    let reader = Reader { client, archive: archive.to_string() };
    show("read", &ids[0], &reader.read(&ids[0]).await?);
    for (id, answer) in ids.iter().zip(reader.read_batch(ids).await?) {
        show("batch", id, &answer);
    }
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> std::process::ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    if arguments.len() < 4 {
        eprintln!("usage: read_documents SERVER ARCHIVE ID...");
        return 2.into();
    }
    if let Err(status) = run(&arguments[1], &arguments[2], &arguments[3..]).await {
        eprintln!("read_documents: {}: {}", reason_of(&status), status.message());
        return 1.into();
    }
    0.into()
}
