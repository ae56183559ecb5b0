"""What a source says of a record log: how it is opened, and which parts of messages it takes."""
