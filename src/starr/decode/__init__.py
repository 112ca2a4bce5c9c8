"""The decoding loop, one file per step of the picture in docs/design.md."""
