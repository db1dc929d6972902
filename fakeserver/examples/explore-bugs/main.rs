//! Six well-known bugs of programs that use Redis: each is found, and its right version passes in every order of the commands.
//!
//! `cargo run -p fakeserver --features explore --example explore-bugs`

#![allow(clippy::print_stdout, reason = "an example shows what happens")]

mod gallery;

fn main() -> Result<(), fakeserver::explore::ExploreError> {
    for bug in gallery::BUGS {
        println!("{}", bug.text()?);
    }
    Ok(())
}
