-- Each server counts the human verifications of an address in its memory.
DROP TABLE chat_verifications;
