"""The steps in order: pipeline, one batch, the warm process, replays."""
