//! `include/fec.h` is what cbindgen makes of the sources. `make header` writes it.

use std::path::Path;
use std::{env, fs};

const SOURCES: [&str; 4] = ["border", "context", "encoder", "decoder"];

#[test]
fn the_header_is_current() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config = cbindgen::Config::from_file(folder.join("cbindgen.toml")).unwrap();
    let mut builder = cbindgen::Builder::new().with_config(config);
    for source in SOURCES {
        builder = builder.with_src(folder.join(format!("src/{source}.rs")));
    }
    let mut made = Vec::new();
    builder.generate().unwrap().write(&mut made);
    let made = String::from_utf8(made).unwrap();
    let path = folder.join("include/fec.h");
    if env::var_os("WRITE_HEADER").is_some() {
        fs::write(&path, &made).unwrap();
    }
    assert!(fs::read_to_string(&path).unwrap_or_default() == made, "include/fec.h is not current: make header");
}
