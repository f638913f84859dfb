import { openChatApi } from '../adapters/agent-client/open.ts'

/** The chat interface of a server, as the terminal asks it. */
export const openChat = openChatApi
