"""GitHub: `github_comment:OWNER/REPOSITORY#NUMBER` gets each part as a comment on an issue or a pull request."""
