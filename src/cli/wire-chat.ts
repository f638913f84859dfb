import { openChatApi } from '../adapters/chat-server.ts'

/** The chat interface of a server, as the terminal asks it. */
export const openChat = openChatApi
