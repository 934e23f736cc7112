"""The interfaces of the systems that cenote's semantics come from: code written for them runs by changing an import."""
