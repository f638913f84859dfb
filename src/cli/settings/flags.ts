/** Defaults that the help of flags states. */
export const STANDARD_HOST = '127.0.0.1'
export const STANDARD_PORT = '3000'
export const STANDARD_DATA_DIR = './dash-data'

/** Flags that override settings, by variable: the flag in commander's syntax, and the key of its value. */
export const SETTING_FLAGS = {
  DASH_DATA_DIR: {
    key: 'dataDir',
    flag: '--data-dir <dir>',
    help: `folder of ledger, feed and objects (DASH_DATA_DIR, default ${STANDARD_DATA_DIR})`,
  },
  HOST: {
    key: 'host',
    flag: '--host <host>',
    help: `address to listen on (HOST, default ${STANDARD_HOST})`,
  },
  PORT: {
    key: 'port',
    flag: '--port <port>',
    help: `port to listen on (PORT, default ${STANDARD_PORT})`,
  },
  DASH_BASE_URL: {
    key: 'baseUrl',
    flag: '--base-url <base>',
    help: 'public address of the server (DASH_BASE_URL)',
  },
  DASH_CHAT_MODEL: {
    key: 'chatModel',
    flag: '--chat-model <model>',
    help: 'chat model (DASH_CHAT_MODEL); auto: the recommended free model',
  },
} as const

type FlagKey = (typeof SETTING_FLAGS)[keyof typeof SETTING_FLAGS]['key']

/** Configuration flags. They override the environment, which overrides the env file. */
export type ConfigFlags = { [Key in FlagKey | 'dotenv']?: string | undefined }
