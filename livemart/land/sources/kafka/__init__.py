"""Topics of Kafka as record logs; imported only by a project that declares one."""
