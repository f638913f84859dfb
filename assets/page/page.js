import { offerChat } from './chat.js'
import { offerCopies } from './copy.js'
import { followRooms } from './rooms.js'

followRooms()
offerCopies()
offerChat()
