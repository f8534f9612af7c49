//! Downloads: each address in turn, checked against the published SHA-256, then renamed into place.
//!
//! The largest file is about 10 MB, so the bytes wait in memory until they are checked. Only checked
//! bytes reach the disk, in a temporary file of the target folder which is synced and then renamed:
//! under the final name there is the whole file or nothing. A broken transfer starts afresh.

use std::io::{Cursor, Read, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use sha2::{Digest, Sha256};
use ureq::Agent;

use crate::error::DownloadError;
use crate::{Error, Result};

/// Called with the bytes that have arrived and, where known, their number in all.
pub type Progress<'a> = &'a mut dyn FnMut(u64, Option<u64>);

/// More than any file here has, packed or not; a server that sends more is not the right one.
const SIZE_LIMIT: u64 = 64 << 20;

/// How often one address is tried when the connection, not the content, is at fault.
const ATTEMPTS: usize = 2;

/// What is to be fetched.
pub(crate) struct Remote<'a> {
    /// Name of the file, also inside an archive.
    pub file: &'a str,
    /// SHA-256 of its content (of a `.gz`, after decompression).
    pub sha256: &'static str,
    /// Where it is; an address that ends in `.zip` is an archive that holds it.
    pub urls: Vec<String>,
}

/// Fetches a file into `folder`, giving up on a server that is silent for `stall`.
pub(crate) fn fetch(
    remote: &Remote<'_>,
    folder: &Path,
    stall: Duration,
    progress: Progress<'_>,
) -> Result<PathBuf> {
    let config = Agent::config_builder()
        .timeout_connect(Some(stall))
        .timeout_recv_response(Some(stall))
        .timeout_per_read(Some(stall));
    let agent = config.build().new_agent();
    let mut causes = Vec::new();
    for url in &remote.urls {
        for attempt in 1..=ATTEMPTS {
            match fetch_from(&agent, remote, url, progress) {
                Ok(bytes) => return store(&bytes, folder, remote.file),
                Err(cause) => {
                    let again = is_passing(&cause) && attempt < ATTEMPTS;
                    if !again {
                        causes.push((url.clone(), cause));
                        break;
                    }
                }
            }
        }
    }
    Err(Error::Download { file: remote.file.to_owned(), causes, put: folder.to_owned() })
}

/// SHA-256 as lower-case hexadecimal digits.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

pub(crate) fn hex(digest: &[u8]) -> String {
    use std::fmt::Write;
    digest.iter().fold(String::new(), |mut text, byte| {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// The content of a gzip stream.
pub(crate) fn gunzip(bytes: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut content = Vec::new();
    flate2::read::GzDecoder::new(bytes).take(SIZE_LIMIT).read_to_end(&mut content)?;
    Ok(content)
}

fn fetch_from(
    agent: &Agent,
    remote: &Remote<'_>,
    url: &str,
    progress: Progress<'_>,
) -> Result<Vec<u8>, DownloadError> {
    let mut bytes = receive(agent, url, progress)?;
    if has_extension(url, "zip") {
        bytes = unpack(bytes, remote.file)?;
    }
    let found = if has_extension(remote.file, "gz") {
        // A stream that does not decompress has no right content either.
        gunzip(&bytes).map_or_else(|_| sha256(&bytes), |content| sha256(&content))
    } else {
        sha256(&bytes)
    };
    if found == remote.sha256 {
        Ok(bytes)
    } else {
        Err(DownloadError::Checksum { found, expected: remote.sha256 })
    }
}

fn receive(agent: &Agent, url: &str, progress: Progress<'_>) -> Result<Vec<u8>, DownloadError> {
    let mut response = agent.get(url).call()?;
    let total = response.body().content_length();
    let mut reader = response.body_mut().with_config().limit(SIZE_LIMIT).reader();
    let mut bytes = Vec::new();
    let mut chunk = vec![0; 1 << 16];
    progress(0, total);
    loop {
        let n = reader
            .read(&mut chunk)
            .map_err(|source| DownloadError::Interrupted { done: bytes.len() as u64, source })?;
        if n == 0 {
            break;
        }
        bytes.extend_from_slice(&chunk[..n]);
        progress(bytes.len() as u64, total);
    }
    let done = bytes.len() as u64;
    match total {
        Some(total) if total != done => Err(DownloadError::Length { done, total }),
        _ => Ok(bytes),
    }
}

/// The archive's member of that name, in whichever folder.
fn unpack(archive: Vec<u8>, file: &str) -> Result<Vec<u8>, DownloadError> {
    let mut archive = zip::ZipArchive::new(Cursor::new(archive))?;
    let is_it = |name: &str| name.rsplit('/').next() == Some(file);
    let name = archive.file_names().flatten().find(|name| is_it(name)).map(std::borrow::Cow::into_owned);
    let member = archive.by_name(name.as_deref().unwrap_or(file))?;
    let mut bytes = Vec::new();
    member.take(SIZE_LIMIT).read_to_end(&mut bytes).map_err(zip::result::ZipError::from)?;
    Ok(bytes)
}

fn store(bytes: &[u8], folder: &Path, file: &str) -> Result<PathBuf> {
    let path = folder.join(file);
    std::fs::create_dir_all(folder).map_err(Error::io(folder))?;
    let mut temporary = tempfile::NamedTempFile::new_in(folder).map_err(Error::io(folder))?;
    temporary.write_all(bytes).map_err(Error::io(&path))?;
    temporary.as_file().sync_all().map_err(Error::io(&path))?;
    temporary.persist(&path).map_err(|error| Error::io(&path)(error.error))?;
    Ok(path)
}

/// Whether trying the same address again may help.
fn is_passing(cause: &DownloadError) -> bool {
    match cause {
        DownloadError::Request(error) => {
            !matches!(error, ureq::Error::StatusCode(400..500) | ureq::Error::BadUri(_))
        }
        DownloadError::Interrupted { .. } | DownloadError::Length { .. } => true,
        DownloadError::Archive(_) | DownloadError::Checksum { .. } => false,
    }
}

pub(crate) fn has_extension(name: &str, extension: &str) -> bool {
    Path::new(name).extension().is_some_and(|found| found.eq_ignore_ascii_case(extension))
}

#[cfg(test)]
pub(crate) mod tests {
    use std::net::TcpListener;
    use std::sync::mpsc;

    use super::*;

    /// SHA-256 of "hello".
    const HELLO: &str = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824";

    /// What the server does with one connection.
    pub enum Answer {
        /// Sends these bytes after a head that announces so many.
        Body { announced: usize, bytes: Vec<u8> },
        /// Sends this status and no body.
        Status(&'static str),
        /// Sends the head and half of what it announces, then is silent until the client leaves.
        Stall,
    }

    impl Answer {
        pub fn whole(bytes: impl Into<Vec<u8>>) -> Self {
            let bytes = bytes.into();
            Self::Body { announced: bytes.len(), bytes }
        }
    }

    /// Serves one answer per connection; gives its address and, on the channel, the paths asked for.
    pub fn serve(answers: Vec<Answer>) -> (String, mpsc::Receiver<String>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let (paths, asked) = mpsc::channel();
        std::thread::spawn(move || {
            for answer in answers {
                let (mut stream, _) = listener.accept().unwrap();
                let mut request = Vec::new();
                while !request.ends_with(b"\r\n\r\n") {
                    let mut byte = [0];
                    if stream.read(&mut byte).unwrap_or(0) == 0 {
                        break;
                    }
                    request.push(byte[0]);
                }
                let path = String::from_utf8_lossy(&request).split(' ').nth(1).unwrap_or("").to_owned();
                // The test may have seen enough and dropped its end.
                let _ = paths.send(path);
                let head = |status: &str, length: usize| {
                    format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n")
                };
                let _ = match answer {
                    Answer::Body { announced, bytes } => stream
                        .write_all(head("200 OK", announced).as_bytes())
                        .and_then(|()| stream.write_all(&bytes)),
                    Answer::Status(status) => stream.write_all(head(status, 0).as_bytes()),
                    Answer::Stall => stream
                        .write_all(head("200 OK", 10).as_bytes())
                        .and_then(|()| stream.write_all(b"hello"))
                        .and_then(|()| stream.read(&mut [0]).map(drop)),
                };
            }
        });
        (address, asked)
    }

    fn hello(urls: Vec<String>) -> Remote<'static> {
        Remote { file: "hello.txt", sha256: HELLO, urls }
    }

    fn get(remote: &Remote<'_>, folder: &Path) -> Result<PathBuf> {
        fetch(remote, folder, Duration::from_millis(300), &mut |_, _| {})
    }

    /// The causes of a failed download, after checking that it left nothing behind.
    fn causes(remote: &Remote<'_>) -> Vec<DownloadError> {
        let folder = tempfile::tempdir().unwrap();
        match get(remote, folder.path()) {
            Err(Error::Download { file, causes, put }) => {
                assert_eq!((file.as_str(), put.as_path()), (remote.file, folder.path()));
                assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
                causes.into_iter().map(|(_, cause)| cause).collect()
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_whole_file_arrives_and_progress_ends_at_its_length() {
        let (address, _) = serve(vec![Answer::whole("hello")]);
        let folder = tempfile::tempdir().unwrap();
        let mut seen = Vec::new();
        let target = folder.path().join("new/folder");
        let path = fetch(&hello(vec![address]), &target, Duration::from_secs(5), &mut |done, total| {
            seen.push((done, total));
        });
        assert_eq!(std::fs::read(path.unwrap()).unwrap(), b"hello");
        assert_eq!(seen.first(), Some(&(0, Some(5))));
        assert_eq!(seen.last(), Some(&(5, Some(5))));
        assert_eq!(std::fs::read_dir(&target).unwrap().count(), 1);
    }

    #[test]
    fn a_truncated_file_is_fetched_afresh() {
        let cut = Answer::Body { announced: 5, bytes: b"hel".to_vec() };
        let (address, _) = serve(vec![cut, Answer::whole("hello")]);
        let folder = tempfile::tempdir().unwrap();
        let path = get(&hello(vec![address]), folder.path()).unwrap();
        assert_eq!(std::fs::read(path).unwrap(), b"hello");
    }

    #[test]
    fn a_file_truncated_twice_is_an_error() {
        let cut = || Answer::Body { announced: 5, bytes: b"hel".to_vec() };
        let (address, _) = serve(vec![cut(), cut()]);
        let causes = causes(&hello(vec![address]));
        assert!(
            matches!(
                causes[..],
                [DownloadError::Interrupted { done: 3, .. } | DownloadError::Length { done: 3, total: 5 }]
            ),
            "{causes:?}"
        );
    }

    #[test]
    fn wrong_bytes_are_not_kept_and_not_asked_for_again() {
        let (address, asked) = serve(vec![Answer::whole("hullo"), Answer::whole("hello")]);
        assert!(matches!(causes(&hello(vec![address]))[..], [DownloadError::Checksum { .. }]));
        assert_eq!(asked.try_iter().count(), 1);
    }

    #[test]
    fn a_file_that_is_not_there_is_looked_for_at_the_next_address() {
        let (first, asked) = serve(vec![Answer::Status("404 Not Found")]);
        let (second, _) = serve(vec![Answer::whole("hello")]);
        let folder = tempfile::tempdir().unwrap();
        get(&hello(vec![format!("{first}/a"), second]), folder.path()).unwrap();
        assert_eq!(asked.try_iter().collect::<Vec<_>>(), ["/a"]);
        let (gone, _) = serve(vec![Answer::Status("404 Not Found")]);
        let causes = causes(&hello(vec![gone]));
        assert!(matches!(causes[..], [DownloadError::Request(ureq::Error::StatusCode(404))]), "{causes:?}");
    }

    #[test]
    fn a_server_that_falls_silent_is_given_up() {
        let (address, _) = serve(vec![Answer::Stall, Answer::Stall]);
        let causes = causes(&hello(vec![address]));
        assert!(matches!(causes[..], [DownloadError::Interrupted { done: 5, .. }]), "{causes:?}");
    }

    #[test]
    fn without_a_server_the_error_says_what_to_do() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        drop(listener);
        let folder = tempfile::tempdir().unwrap();
        let message = get(&hello(vec![address]), folder.path()).unwrap_err().to_string();
        assert!(message.contains("hello.txt"), "{message}");
        assert!(message.contains(&folder.path().display().to_string()), "{message}");
        assert!(message.contains("BAYESPC_DATA"), "{message}");
    }

    pub fn archive(name: &str, bytes: &[u8]) -> Vec<u8> {
        let mut zip = zip::ZipWriter::new(Cursor::new(Vec::new()));
        zip.start_file(name, zip::write::SimpleFileOptions::default()).unwrap();
        zip.write_all(bytes).unwrap();
        zip.finish().unwrap().into_inner()
    }

    #[test]
    fn a_file_is_taken_out_of_an_archive_from_whichever_folder() {
        let (address, _) = serve(vec![Answer::whole(archive("deep/hello.txt", b"hello"))]);
        let folder = tempfile::tempdir().unwrap();
        let path = get(&hello(vec![format!("{address}/all.zip")]), folder.path()).unwrap();
        assert_eq!(std::fs::read(path).unwrap(), b"hello");
    }

    #[test]
    fn an_archive_without_the_file_or_broken_is_an_error() {
        for bytes in [archive("other.txt", b"hello"), b"PK not a zip".to_vec()] {
            let (address, _) = serve(vec![Answer::whole(bytes)]);
            let causes = causes(&hello(vec![format!("{address}/all.zip")]));
            assert!(matches!(causes[..], [DownloadError::Archive(_)]), "{causes:?}");
        }
    }

    #[test]
    fn a_gzip_file_is_checked_by_its_content_and_kept_packed() {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(b"hello").unwrap();
        let packed = encoder.finish().unwrap();
        let (address, _) = serve(vec![Answer::whole(packed.clone()), Answer::whole(packed[..9].to_vec())]);
        let remote = Remote { file: "hello.gz", sha256: HELLO, urls: vec![address] };
        let folder = tempfile::tempdir().unwrap();
        let path = get(&remote, folder.path()).unwrap();
        assert_eq!(std::fs::read(path).unwrap(), packed);
        assert!(matches!(causes(&remote)[..], [DownloadError::Checksum { .. }]));
    }

    #[test]
    fn an_older_file_under_the_name_survives_a_failed_download() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("hello.txt"), "old").unwrap();
        let (address, _) = serve(vec![Answer::whole("hullo")]);
        get(&hello(vec![address]), folder.path()).unwrap_err();
        assert_eq!(std::fs::read(folder.path().join("hello.txt")).unwrap(), b"old");
    }
}
