#!/bin/bash
cat list | parallel --pipe --block 1M python preprocess.py
