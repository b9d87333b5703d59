// SPDX-License-Identifier: Apache-2.0
//! Builds a DwarFS image of documents, compares all of them with the text, and measures random
//! reads of whole documents, each with an empty cache of blocks.
//!
//!     dwarfs_peer TEXT DOCUMENTS.tsv IMAGE BLOCK_SIZE ZSTD_LEVEL SECONDS
//!
//! Prints one JSON object. Times are CPU time of the whole process.
use std::error::Error;
use std::fs;
use std::io::Write;
use std::num::NonZero;
use std::time::Duration;

use dwarfs::archive::Config as ReadConfig;
use dwarfs::{Archive, AsChunks};
use dwarfs_enc::chunker::{BasicChunker, CdcChunker, Chunker};
use dwarfs_enc::metadata::{Builder, Config, InodeMetadata};
use dwarfs_enc::section::{CompressParam, Writer};

struct Row {
    offset: usize,
    size: usize,
}

fn cpu_time() -> Result<Duration, Box<dyn Error>> {
    let stat = fs::read_to_string("/proc/self/stat")?;
    let fields: Vec<&str> = stat[stat.rfind(')').ok_or("/proc/self/stat")? + 2..].split(' ').collect();
    let ticks = fields[11].parse::<u64>()? + fields[12].parse::<u64>()?;
    Ok(Duration::from_millis(ticks * 10))
}

fn read_rows(path: &str) -> Result<Vec<Row>, Box<dyn Error>> {
    let mut rows = Vec::new();
    for line in fs::read(path)?.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()) {
        let mut fields = line.splitn(3, |&byte| byte == b'\t');
        let mut number = || -> Result<usize, Box<dyn Error>> {
            Ok(std::str::from_utf8(fields.next().ok_or("a line has too few fields")?)?.parse()?)
        };
        rows.push(Row { offset: number()?, size: number()? });
    }
    Ok(rows)
}

fn build(text: &[u8], rows: &[Row], image: &str, block_size: u32, level: i32) -> Result<(), Box<dyn Error>> {
    let mut config = Config::default();
    config.block_size(NonZero::new(block_size).ok_or("a block size of 0")?);
    let mut tree = Builder::new_with_config(&config, &InodeMetadata::new(0o755));
    let compression = CompressParam::Zstd(level);
    let writer = Writer::new_with_threads(fs::File::create(image)?, NonZero::<usize>::MIN)?;
    let mut chunker = CdcChunker::new(BasicChunker::new(writer, tree.block_size(), compression));
    let (root, about) = (tree.root(), InodeMetadata::new(0o644));
    for (number, row) in rows.iter().enumerate() {
        let chunks = chunker.put_bytes(&text[row.offset..row.offset + row.size])?;
        tree.put_file(root, &format!("{number:08}"), &about, chunks)?;
    }
    let mut writer = chunker.finish()?;
    writer.write_metadata_sections(&tree.finish()?, compression)?;
    writer.finish()?.flush()?;
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().collect();
    let [_, text_path, rows_path, image, block_size, level, seconds] = words.as_slice() else {
        return Err("usage: dwarfs_peer TEXT DOCUMENTS.tsv IMAGE BLOCK_SIZE ZSTD_LEVEL SECONDS".into());
    };
    let text = fs::read(text_path)?;
    let rows = read_rows(rows_path)?;
    let block_size: u32 = block_size.parse()?;
    let started = cpu_time()?;
    build(&text, &rows, image, block_size, level.parse()?)?;
    let build_seconds = (cpu_time()? - started).as_secs_f64();

    let mut config = ReadConfig::default();
    // One block: those of earlier documents are decoded again, as in the other peers.
    config.block_cache_size_limit(block_size as usize);
    let (index, mut archive) = Archive::new_with_config(fs::File::open(image)?, &config)?;
    let files: Vec<dwarfs::File> = index.root().entries().filter_map(|entry| entry.inode().as_file()).collect();
    if files.len() != rows.len() {
        return Err("the image has another number of files".into());
    }
    for (file, row) in files.iter().zip(&rows) {
        if file.read_to_vec(&mut archive)? != text[row.offset..row.offset + row.size] {
            return Err("a document differs from the text".into());
        }
    }
    let limit = Duration::from_secs_f64(seconds.parse()?);
    let (mut state, mut count, started) = (1u64, 0u64, cpu_time()?);
    while cpu_time()? - started < limit {
        for _ in 0..16 {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let file = files[(state >> 33) as usize % files.len()];
            std::hint::black_box(file.read_to_vec(&mut archive)?);
            count += 1;
        }
    }
    println!(
        "{{\"stored_bytes\": {}, \"build_cpu_seconds\": {build_seconds:.3}, \"reads_per_second\": {:.1}}}",
        fs::metadata(image)?.len(),
        count as f64 / (cpu_time()? - started).as_secs_f64()
    );
    Ok(())
}
