//! The `mux` binary: hands its arguments to the library and exits with the status that it returns.

fn main() -> std::process::ExitCode {
    std::process::ExitCode::from(mux_cli::run::main())
}
