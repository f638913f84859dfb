import { offerChat } from './chat.js'
import { offerCopies } from './copy.js'
import { followRooms } from './rooms.js'
import { offerTravel } from './travel.js'

followRooms()
offerCopies()
offerChat()
offerTravel()
