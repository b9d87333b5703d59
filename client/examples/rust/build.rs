// SPDX-License-Identifier: Apache-2.0
// Generates the client with protoc, from the directory QUIRE_PROTO.
fn main() -> std::io::Result<()> {
    println!("cargo::rerun-if-env-changed=QUIRE_PROTO");
    let protos = std::env::var("QUIRE_PROTO").unwrap_or_else(|_| "../../../proto".to_string());
    tonic_prost_build::configure()
        .build_server(false)
        .compile_protos(&[format!("{protos}/quire/v1/archive.proto")], &[protos])
}
