//! Programs for bash, which speak to the server without any client library.

/// `ask WORDS...` sends an inline command and sets `reply` to its answer.
const CLIENT: &str = r#"
exec 3<>"/dev/tcp/$REDIS_HOST/$REDIS_PORT"
ask() {
    printf '%s\r\n' "$*" >&3
    IFS= read -r reply <&3 || exit 3
    reply=${reply%$'\r'}
    case $reply in
        '$-1') ;;
        '$'*) IFS= read -r reply <&3; reply=${reply%$'\r'} ;;
    esac
}
"#;

/// The command line of a program that is connected and then runs this script.
pub(crate) fn program(script: &str) -> Vec<String> {
    ["bash", "-c", &format!("{CLIENT}{script}")]
        .map(str::to_owned)
        .to_vec()
}
