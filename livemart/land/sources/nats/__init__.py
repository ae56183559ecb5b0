"""Streams of NATS JetStream as record logs; imported only by a project that declares one."""
